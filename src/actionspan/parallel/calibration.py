"""Costs of messages and additions, fitted to measured all-reduces."""

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from actionspan.parallel.simulated import Costs
from actionspan.parallel.simulated_rounds import simulated_seconds

Floats = npt.NDArray[np.float64]

FITTED_RANKS = 4
_START = Costs(1e-4, 1e-8, 1e-10)
_STEPS = 60


class Row(NamedTuple):
    """One measured all-reduce."""

    algorithm: str
    """One of `simulated_rounds.ALGORITHMS`."""
    ranks: int
    """Workers."""
    bytes: int
    """Of each tensor."""
    seconds: float
    """Until the last rank was done."""


def calibrate(rows: Iterable[Row], most_ranks: int = FITTED_RANKS) -> Costs:
    """Fit costs to measurements on few ranks: the least sum of squared relative errors.

    Simulated seconds are piecewise linear in the costs, so that each step is a linear problem,
    solved for costs that are not negative; steps that make matters worse are halved.

    Args:
        rows: Measurements; those on more than `most_ranks` ranks are not looked at.
        most_ranks: The largest number of ranks to fit to.

    Raises:
        ValueError: Fewer than three rows are left, or seconds that are not above 0.
    """
    fitted = [row for row in rows if row.ranks <= most_ranks]
    if len(fitted) < 3:
        raise ValueError(f"{len(fitted)} rows on {most_ranks} ranks or fewer: at least 3")
    if any(not row.seconds > 0 for row in fitted):
        raise ValueError("measured seconds must be above 0")
    measured = np.array([row.seconds for row in fitted])
    costs = np.array(_START)
    error = _squares(fitted, costs)
    for _ in range(_STEPS):
        target = _not_negative(_slopes(fitted, costs) / measured[:, None])
        step = target - costs
        while (moved := _squares(fitted, costs + step)) > error and abs(step).max() > 0:
            step = np.where(np.abs(step) > 1e-9 * np.abs(costs), step / 2, 0.0)
        if error - moved <= 1e-12 * error:
            break
        costs, error = costs + step, moved
    return Costs(*(float(cost) for cost in costs))


def errors(
    rows: Iterable[Row], costs: Costs, least_ranks: int = FITTED_RANKS + 1
) -> list[tuple[Row, float]]:
    """Return rows on ranks that were not fitted, each with simulated / measured - 1."""
    kept = [row for row in rows if row.ranks >= least_ranks]
    return [(row, _predicted(row, costs) / row.seconds - 1) for row in kept]


def _predicted(row: Row, costs: Costs) -> float:
    """Return the simulated seconds of a row."""
    return float(simulated_seconds(row.algorithm, row.ranks, row.bytes, costs).max())


def _squares(rows: Sequence[Row], costs: Floats) -> float:
    """Return the sum of squared relative errors."""
    relative = [_predicted(row, Costs(*costs)) / row.seconds - 1 for row in rows]
    return float(np.square(relative).sum())


def _slopes(rows: Sequence[Row], costs: Floats) -> Floats:
    """Return (rows, 3): how the simulated seconds change with each cost.

    The seconds are linear close by, so that a small step up gives the slope there, and slopes
    times costs the seconds themselves.
    """
    slopes = np.empty((len(rows), len(costs)))
    base = np.array([_predicted(row, Costs(*costs)) for row in rows])
    for index, start in enumerate(_START):
        change = 1e-6 * max(costs[index], 1e-3 * start)
        shifted = costs.copy()
        shifted[index] += change
        moved = np.array([_predicted(row, Costs(*shifted)) for row in rows])
        slopes[:, index] = (moved - base) / change
    return slopes


def _not_negative(design: Floats) -> Floats:
    """Return the x of least |design·x - 1| whose values are not negative: the best of few columns.

    Args:
        design: (m, k) with a small k; every choice of columns is tried.
    """
    best, least = np.zeros(design.shape[1]), float(len(design))
    for count in range(1, design.shape[1] + 1):
        for columns in itertools.combinations(range(design.shape[1]), count):
            part = design[:, columns]
            values = np.linalg.lstsq(part, np.ones(len(part)), rcond=None)[0]
            residual = float(np.square(part @ values - 1).sum())
            if (values >= 0).all() and residual < least:
                best, least = np.zeros(design.shape[1]), residual
                best[list(columns)] = values
    return best
