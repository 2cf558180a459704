"""Costs of messages and additions, fitted to measured all-reduces."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from actionspan.papers.ring.simulated import Costs, Floats
from actionspan.papers.ring.simulated_rounds import simulated_seconds

FITTED_RANKS = 4
_START_BYTES = 10.0 ** np.arange(1, 8)  # alpha / beta
_START_ADDITIONS = 0.01  # gamma / beta
_STEPS = 60


class Row(NamedTuple):
    """One measured all-reduce of tensors of `bytes`."""

    algorithm: str  # one of `simulated_rounds.ALGORITHMS`
    ranks: int  # workers
    bytes: int
    seconds: float  # until the last rank was done


def calibrate(rows: Iterable[Row], burst: float = 0.0, most_ranks: int = FITTED_RANKS) -> Costs:
    """Fit costs to measurements on few ranks: the least sum of squared relative errors.

    Errors are logarithms of simulated / measured, so that half and double weigh alike. Simulated
    seconds are piecewise linear in the costs: each step solves a linear problem for costs that are
    not negative, and is halved while it increases the sum.

    Args:
        rows: Measurements; those on more than `most_ranks` ranks are ignored.
        burst: Bytes that the links let through at once, known for rate-limited links.
        most_ranks: The largest number of ranks to fit to.

    Raises:
        ValueError: Fewer than three rows to fit, or seconds that are not above 0.
    """
    fitted = [row for row in rows if row.ranks <= most_ranks]
    if len(fitted) < 3:
        raise ValueError(f"{len(fitted)} rows on {most_ranks} ranks or fewer: at least 3")
    if any(not row.seconds > 0 for row in fitted):
        raise ValueError("measured seconds must be above 0")
    fit = _Fit(fitted, np.array([row.seconds for row in fitted]), burst)
    values = fit.start()
    error = fit.error(values)
    for _ in range(_STEPS):
        simulated = fit.simulated(values)
        design = fit.slopes(values) / simulated[:, None]
        step = nnls(design, 1 - np.log(simulated / fit.seconds))[0] - values
        while (moved := fit.error(values + step)) > error and abs(step).max() > 0:
            step = np.where(np.abs(step) > 1e-9 * np.abs(values), step / 2, 0.0)
        if error - moved <= 1e-12 * error:
            break
        values, error = values + step, moved
    return fit.costs(values)


def errors(
    rows: Iterable[Row], costs: Costs, least_ranks: int = FITTED_RANKS + 1
) -> list[tuple[Row, float]]:
    """Return the rows on ranks that were not fitted, each with simulated / measured - 1."""
    kept = [row for row in rows if row.ranks >= least_ranks]
    return [(row, _predicted(row, costs) / row.seconds - 1) for row in kept]


def _predicted(row: Row, costs: Costs) -> float:
    return float(simulated_seconds(row.algorithm, row.ranks, row.bytes, costs).max())


@dataclass(frozen=True)
class _Fit:
    """Measured rows, compared with simulations by three values: alpha, beta, gamma."""

    rows: Sequence[Row]
    seconds: Floats  # measured
    burst: float

    def costs(self, values: Floats) -> Costs:
        alpha, beta, gamma = (float(value) for value in values)
        return Costs(alpha, beta, gamma, self.burst)

    def simulated(self, values: Floats) -> Floats:
        """Return the simulated seconds of the rows."""
        return np.array([_predicted(row, self.costs(values)) for row in self.rows])

    def error(self, values: Floats) -> float:
        """Return the sum of squared errors, infinite where a row would take no time."""
        simulated = self.simulated(values)
        if not (simulated > 0).all():
            return math.inf
        return float(np.square(np.log(simulated / self.seconds)).sum())

    def slopes(self, values: Floats) -> Floats:
        """Return (rows, 3) derivatives of the simulated seconds by each value.

        The seconds are linear nearby: a small step up gives the slope, and slopes times values the
        seconds themselves.
        """
        base = self.simulated(values)
        least = 1e-3 * values[1] * np.array([_START_BYTES[0], 1.0, _START_ADDITIONS])
        changes = 1e-6 * np.maximum(np.maximum(values, least), 1e-12 * values.max())
        shifted = [self.simulated(values + change) for change in np.diag(changes)]
        slopes: Floats = (np.array(shifted) - base).T / changes
        return slopes

    def start(self) -> Floats:
        """Return the best of several starting points, with additions faster than messages."""
        starts = []
        for bytes_of_alpha in _START_BYTES:
            values = np.array([bytes_of_alpha, 1.0, _START_ADDITIONS])
            values *= math.exp(np.log(self.seconds / self.simulated(values)).mean())
            starts.append(values)
        return min(starts, key=self.error)
