"""The time of a training run as a function of its ranks, fitted as far as the runs determine it.

Two models (paper 000, equations 1 and 2), n the number of ranks:

    parameter server   t = T/n + C·n + P
    ring               t = T/n + C·(n-1)/n + P  =  (T - C)/n + (C + P)

T is the compute time of one rank, C belongs to the communication, P to start and finish. The
second form of the ring shows that run times alone cannot separate T and C: its three columns have
rank 2. Where the table has the compute time t1 of single-rank runs, T is their mean and only C and
P are fitted; else T, C and P are fitted where the runs determine them, and T - C and C + P for the
ring.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from actionspan.arrays import Float64
from actionspan.scaling.least_squares import (
    Error,
    Estimate,
    LeastSquares,
    explained,
    least_squares,
)
from actionspan.scaling.table import EXCHANGES, SERVER_EXCHANGES, SINGLE, Run

PARAMETERS = ("T", "C", "P")
CURVE_TERMS = ("1/n", "n", "1")
# From (T, C, P) to the coefficients of the curve's terms.
_SERVER_CURVE = np.eye(3)
_RING_CURVE = np.array([[1.0, -1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
# From the coefficients of 1/n and 1 to those of the curve's terms.
_TWO_TERMS = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])


@dataclass(frozen=True, kw_only=True)
class Fit:
    """What the runs of one exchange say about its model."""

    runs: tuple[Run, ...]
    fitted: tuple[str, ...]
    """The parameters that were fitted, by `squares`."""
    squares: LeastSquares
    parameters: Estimate | None
    """T, C and P, if determined."""
    curve: Estimate | None
    """The coefficients of `CURVE_TERMS`, if determined."""
    r2: float | None
    """Share of the variance of the run times that the fit explains."""
    measured: Estimate | None = None
    """T alone, where it was measured."""
    times_measured: int = 0
    """Single-rank runs that T is the mean of."""
    borrowed: int = 0
    """Single-rank runs that C and P were fitted to as well."""


def is_server(exchange: str) -> bool:
    """Return whether an exchange follows the parameter server's model, not the ring's."""
    return exchange in SERVER_EXCHANGES


def model_columns(exchange: str, ranks: Float64) -> Float64:
    """Return the (m, 3) columns that T, C and P are multiplied with, for (m,) rank numbers."""
    communication = ranks if is_server(exchange) else (ranks - 1) / ranks
    return np.column_stack([1 / ranks, communication, np.ones_like(ranks)])


def ranks_and_seconds(runs: Sequence[Run]) -> tuple[Float64, Float64]:
    """Return the (m,) rank numbers and the (m,) seconds of runs."""
    ranks = np.array([run.ranks for run in runs], dtype=np.float64)
    return ranks, np.array([run.seconds for run in runs], dtype=np.float64)


def fit_runs(runs: Sequence[Run]) -> dict[str, Fit]:
    """Fit the model of each exchange in a table of runs, in the order of `EXCHANGES`.

    The runs of exchange `none` are the single-rank reference.

    Raises:
        ValueError: There is no run of an exchange.
    """
    computing = [run for run in runs if run.exchange == SINGLE and run.t1 is not None]
    fits = {}
    for exchange in EXCHANGES:
        if own := tuple(run for run in runs if run.exchange == exchange):
            fits[exchange] = (
                _with_measured(exchange, own, computing) if computing else _from_times(own)
            )
    if not fits:
        raise ValueError(f"no run of an exchange that joins ranks ({', '.join(EXCHANGES)})")
    return fits


def _from_times(runs: tuple[Run, ...]) -> Fit:
    """Fit run times alone."""
    exchange = runs[0].exchange
    ranks, seconds = ranks_and_seconds(runs)
    columns = model_columns(exchange, ranks)
    full = least_squares(columns, seconds)
    parameters = curve = None
    if is_server(exchange):
        if full.determined:
            parameters = curve = full.estimate
    else:
        two = least_squares(columns[:, [0, 2]], seconds)
        if two.determined:
            curve = two.estimate.mapped(_TWO_TERMS)
    return Fit(
        runs=runs,
        fitted=PARAMETERS,
        squares=full,
        parameters=parameters,
        curve=curve,
        r2=explained(seconds, columns @ full.coefficients),
    )


def _with_measured(exchange: str, runs: tuple[Run, ...], single: Sequence[Run]) -> Fit:
    """Take T from single-rank runs and fit C and P to the rest of the run times.

    Where all runs are on the same number of ranks, the single-rank runs join them: without their
    t1 they are P, as one rank has no communication.
    """
    compute = np.array([run.t1 for run in single], dtype=np.float64)
    total = float(compute.mean())
    degrees = len(compute) - 1
    variance = float(compute.var(ddof=1)) / len(compute) if degrees else 1.0
    ranks, seconds = ranks_and_seconds(runs)
    columns = model_columns(exchange, ranks)
    share, design = columns[:, 0], columns[:, 1:]  # of T, and of C and P
    rest = seconds - total * share
    borrowed = len(single) if len(set(ranks)) == 1 else 0
    if borrowed:
        alone = np.array([run.seconds for run in single])
        seconds = np.concatenate([seconds, alone])
        rest = np.concatenate([rest, alone - compute])
        share = np.concatenate([share, np.zeros(borrowed)])
        design = np.concatenate([design, np.tile([0.0, 1.0], (borrowed, 1))])
    squares = least_squares(design, rest)
    parameters = curve = None
    if squares.determined:
        (residual,) = squares.estimate.errors
        # what an additional second of T does to T, C and P
        effect = np.concatenate([[1.0], -squares.inverse @ (design.T @ share)])
        parameters = Estimate(
            np.concatenate([[total], squares.coefficients]),
            (
                Error(np.pad(residual.covariance, ((1, 0), (1, 0))), residual.degrees),
                Error(variance * np.outer(effect, effect), degrees),
            ),
        )
        curve = parameters.mapped(_SERVER_CURVE if is_server(exchange) else _RING_CURVE)
    return Fit(
        runs=runs,
        fitted=PARAMETERS[1:],
        squares=squares,
        parameters=parameters,
        curve=curve,
        r2=explained(seconds, seconds - rest + design @ squares.coefficients),
        measured=Estimate(np.array([total]), (Error(np.array([[variance]]), degrees),)),
        times_measured=len(compute),
        borrowed=borrowed,
    )
