"""Costs of messages and additions, fitted to measured all-reduces."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from actionspan.papers.ring.simulated import Costs
from actionspan.papers.ring.simulated_rounds import simulated_seconds

Floats = npt.NDArray[np.float64]

FITTED_RANKS = 4
_START_BYTES = 10.0 ** np.arange(1, 8)  # alpha / beta
_START_ADDITIONS = 0.01  # gamma / beta
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


def calibrate(rows: Iterable[Row], burst: float = 0.0, most_ranks: int = FITTED_RANKS) -> Costs:
    """Fit costs to measurements on few ranks: the least sum of squared relative errors.

    Errors are logarithms of simulated / measured, so that half and double weigh alike. Simulated
    seconds are piecewise linear in the costs: each step solves a linear problem for costs that are
    not negative, and one that makes matters worse is halved.

    Args:
        rows: Measurements; those on more than `most_ranks` ranks are not looked at.
        burst: Bytes that the links let through at once, which is known of rate-limited ones.
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
    costs = _start(fitted, measured, burst)
    error = _squares(fitted, costs, burst)
    for _ in range(_STEPS):
        simulated = _simulated(fitted, costs, burst)
        design = _slopes(fitted, costs, burst) / simulated[:, None]
        step = nnls(design, 1 - np.log(simulated / measured))[0] - costs
        while (moved := _squares(fitted, costs + step, burst)) > error and abs(step).max() > 0:
            step = np.where(np.abs(step) > 1e-9 * np.abs(costs), step / 2, 0.0)
        if error - moved <= 1e-12 * error:
            break
        costs, error = costs + step, moved
    return _costs(costs, burst)


def errors(
    rows: Iterable[Row], costs: Costs, least_ranks: int = FITTED_RANKS + 1
) -> list[tuple[Row, float]]:
    """Return rows on ranks that were not fitted, each with simulated / measured - 1."""
    kept = [row for row in rows if row.ranks >= least_ranks]
    return [(row, _predicted(row, costs) / row.seconds - 1) for row in kept]


def _predicted(row: Row, costs: Costs) -> float:
    """Return the simulated seconds of a row."""
    return float(simulated_seconds(row.algorithm, row.ranks, row.bytes, costs).max())


def _costs(values: Floats, burst: float) -> Costs:
    """Return three fitted values as costs."""
    alpha, beta, gamma = (float(value) for value in values)
    return Costs(alpha, beta, gamma, burst)


def _simulated(rows: Sequence[Row], costs: Floats, burst: float) -> Floats:
    """Return the simulated seconds of rows."""
    return np.array([_predicted(row, _costs(costs, burst)) for row in rows])


def _squares(rows: Sequence[Row], costs: Floats, burst: float) -> float:
    """Return the sum of squared errors, infinite where a row would take no time."""
    simulated = _simulated(rows, costs, burst)
    if not (simulated > 0).all():
        return math.inf
    return float(np.square(np.log(simulated / [row.seconds for row in rows])).sum())


def _slopes(rows: Sequence[Row], costs: Floats, burst: float) -> Floats:
    """Return (rows, 3): how the simulated seconds change with each cost.

    The seconds are linear close by, so that a small step up gives the slope there, and slopes
    times costs the seconds themselves.
    """
    slopes = np.empty((len(rows), len(costs)))
    base = _simulated(rows, costs, burst)
    least = 1e-3 * costs[1] * np.array([_START_BYTES[0], 1.0, _START_ADDITIONS])
    for index in range(len(costs)):
        change = 1e-6 * max(costs[index], least[index], 1e-12 * costs.max())
        shifted = costs.copy()
        shifted[index] += change
        slopes[:, index] = (_simulated(rows, shifted, burst) - base) / change
    return slopes


def _start(rows: Sequence[Row], measured: Floats, burst: float) -> Floats:
    """Return the best of some costs to start from, with additions faster than messages."""
    starts = []
    for bytes_of_alpha in _START_BYTES:
        costs = np.array([bytes_of_alpha, 1.0, _START_ADDITIONS])
        costs *= math.exp(np.log(measured / _simulated(rows, costs, burst)).mean())
        starts.append((_squares(rows, costs, burst), costs))
    return min(starts, key=lambda start: start[0])[1]
