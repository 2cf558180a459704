"""Costs of messages and additions, fitted to measured all-reduces."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from actionspan.arrays import Float64
from simulation.ranks import Costs
from simulation.rounds import simulated_seconds

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


def calibrate(rows: Iterable[Row], burst: float = 0.0) -> Costs:
    """Fit costs to rows on up to `FITTED_RANKS` ranks: the least sum of squared relative errors.

    Errors are logarithms of simulated / measured, so that half and double weigh alike. Simulated
    seconds are piecewise linear in the costs: each step solves a linear problem for costs that are
    not negative, and is halved while it increases the sum. `burst` is the bytes that the links let
    through at once, known for rate-limited links.

    Raises:
        ValueError: Fewer than three rows to fit, or seconds that are not above 0.
    """
    fitted = [row for row in rows if row.ranks <= FITTED_RANKS]
    if len(fitted) < 3:
        raise ValueError(f"{len(fitted)} rows on {FITTED_RANKS} ranks or fewer: at least 3")
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


def errors(rows: Iterable[Row], costs: Costs) -> list[tuple[Row, float]]:
    """Return the rows on more ranks than were fitted, each with simulated / measured - 1."""
    kept = [row for row in rows if row.ranks > FITTED_RANKS]
    return [(row, _predicted(row, costs) / row.seconds - 1) for row in kept]


def _predicted(row: Row, costs: Costs) -> float:
    return float(simulated_seconds(row.algorithm, row.ranks, row.bytes, costs).max())


@dataclass(frozen=True)
class _Fit:
    """Measured rows, compared with simulations by three values: alpha, beta, gamma."""

    rows: Sequence[Row]
    seconds: Float64  # measured
    burst: float

    def costs(self, values: Float64) -> Costs:
        alpha, beta, gamma = (float(value) for value in values)
        return Costs(alpha, beta, gamma, self.burst)

    def simulated(self, values: Float64) -> Float64:
        """Return the simulated seconds of the rows."""
        return np.array([_predicted(row, self.costs(values)) for row in self.rows])

    def error(self, values: Float64) -> float:
        """Return the sum of squared errors, infinite where a row would take no time."""
        simulated = self.simulated(values)
        if not (simulated > 0).all():
            return math.inf
        return float(np.square(np.log(simulated / self.seconds)).sum())

    def slopes(self, values: Float64) -> Float64:
        """Return (rows, 3) derivatives of the simulated seconds by each value.

        The seconds are linear nearby: a small step up gives the slope, and slopes times values the
        seconds themselves.
        """
        base = self.simulated(values)
        least = 1e-3 * values[1] * np.array([_START_BYTES[0], 1.0, _START_ADDITIONS])
        changes = 1e-6 * np.maximum(np.maximum(values, least), 1e-12 * values.max())
        shifted = [self.simulated(values + change) for change in np.diag(changes)]
        slopes: Float64 = (np.array(shifted) - base).T / changes
        return slopes

    def start(self) -> Float64:
        """Return the best of several starting points, with additions faster than messages."""
        shapes = [np.array([size, 1.0, _START_ADDITIONS]) for size in _START_BYTES]
        scales = [np.log(self.seconds / self.simulated(shape)).mean() for shape in shapes]
        starts = [shape * math.exp(scale) for shape, scale in zip(shapes, scales, strict=True)]
        return min(starts, key=self.error)
