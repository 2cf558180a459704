"""The time of a training run as a function of its ranks, fitted as far as the runs determine it.

Two models (paper 000, equations 1 and 2), n the number of ranks:

    parameter server   t = T/n + C·n + P
    ring               t = T/n + C·(n-1)/n + P  =  (T - C)/n + (C + P)

T is the compute time of one rank, C belongs to the communication, P to start and finish. By the
second form of the ring, run times alone cannot separate T and C: its three columns have rank 2.
Where the table has the compute time t1 of single-rank runs, T is their mean and only C and P are
fitted; else T, C and P where the runs determine them, and T - C and C + P for the ring.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from actionspan.arrays import Float64
from actionspan.scaling.times import EXCHANGES, SERVER_EXCHANGES, SINGLE, Run

CONFIDENCE = 0.95
# A singular value this much smaller than the largest comes from rounding, not from the data.
_RANK_TOLERANCE = 1e-10


@dataclass(frozen=True)
class Error:
    """One independent source of error of an estimate."""

    covariance: Float64  # (k, k); where `degrees` is 0, known only up to a factor
    degrees: int  # of freedom that the covariance was estimated with


@dataclass(frozen=True)
class Estimate:
    """Values (k,) with the errors that they carry."""

    values: Float64
    errors: tuple[Error, ...]

    def interval(self, weights: Sequence[float]) -> tuple[float, float] | None:
        """Return the confidence interval of a weighted sum; None where its error is not known.

        The degrees of freedom of several errors together are by Welch and Satterthwaite.
        """
        direction = np.asarray(weights, dtype=np.float64)
        total = spread = 0.0
        for error in self.errors:
            variance = float(direction @ error.covariance @ direction)
            scale = float(direction @ direction) * float(np.trace(error.covariance))
            if variance <= 1e-20 * scale:
                continue  # this error does not touch the sum
            if error.degrees == 0:
                return None
            total += variance
            spread += variance**2 / error.degrees
        value = float(direction @ self.values)
        if total == 0.0:
            return value, value
        half = float(stdtrit(total**2 / spread, (1 + CONFIDENCE) / 2)) * math.sqrt(total)
        return value - half, value + half

    def mapped(self, matrix: Float64) -> "Estimate":
        """Return the estimate of `matrix @ values`; matrix is (j, k)."""
        spread = (Error(matrix @ one.covariance @ matrix.T, one.degrees) for one in self.errors)
        return Estimate(matrix @ self.values, tuple(spread))


@dataclass(frozen=True, kw_only=True)
class _LeastSquares:
    """A fit of `design @ coefficients` to values, and how well the design determines it."""

    coefficients: Float64  # (k,), of least norm where several fit equally well
    rank: int  # independent columns of the design
    degrees: int  # rows less rank
    singular_values: Float64  # (k,) of the design with columns scaled to norm 1, falling
    condition: float | None  # of the scaled design; None: infinite
    inverse: Float64  # (k, k), (XᵀX)⁻¹: the coefficients' covariance for residuals of variance 1
    estimate: Estimate | None  # of the only best fit, with the error that its residuals show


def least_squares(design: Float64, values: Float64) -> _LeastSquares:
    """Fit (m,) values by a linear model with an (m, k) design, m ≥ 1, and equal weights."""
    rows, columns = design.shape
    norms = np.linalg.norm(design, axis=0)
    norms[norms == 0] = 1.0
    left, singular, right = np.linalg.svd(design / norms, full_matrices=False)
    rank = int(np.count_nonzero(singular > _RANK_TOLERANCE * singular[0]))
    singular[rank:] = 0.0
    degrees = rows - rank
    condition = estimate = None
    if rank == columns:
        inverse_root = (right / singular[:, None]).T / norms[:, None]  # (k, k)
        coefficients = inverse_root @ (left.T @ values)
        inverse = inverse_root @ inverse_root.T
        residuals = values - design @ coefficients
        variance = float(residuals @ residuals) / degrees if degrees else 1.0
        estimate = Estimate(coefficients, (Error(variance * inverse, degrees),))
        condition = float(singular[0] / singular[-1])
    else:
        coefficients = np.linalg.lstsq(design, values, rcond=_RANK_TOLERANCE)[0]
        inverse = np.full((columns, columns), np.nan)
    return _LeastSquares(
        coefficients=coefficients,
        rank=rank,
        degrees=degrees,
        singular_values=np.pad(singular, (0, columns - len(singular))),
        condition=condition,
        inverse=inverse,
        estimate=estimate,
    )


def explained(values: Float64, predicted: Float64) -> float | None:
    """Return r², the share of the variance that is predicted; None without variance."""
    about_mean = float(np.square(values - values.mean()).sum())
    if about_mean <= (1e-12 * float(np.abs(values).max())) ** 2 * len(values):
        return None
    return 1 - float(np.square(values - predicted).sum()) / about_mean


PARAMETERS = ("T", "C", "P")
CURVE_TERMS = ("1/n", "n", "1")
# From (T, C, P) to the coefficients of the curve's terms.
_SERVER_CURVE = np.eye(3)
_RING_CURVE = np.array([[1.0, -1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
# From the coefficients of 1/n and 1 to the coefficients of the curve's terms.
_TWO_TERMS = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])


@dataclass(frozen=True, kw_only=True)
class Fit:
    """The model of one exchange as its runs determine it."""

    runs: tuple[Run, ...]
    fitted: tuple[str, ...]  # the parameters that were fitted, by `squares`
    squares: _LeastSquares
    parameters: Estimate | None  # T, C and P, if determined
    curve: Estimate | None  # the coefficients of `CURVE_TERMS`, if determined
    r2: float | None  # share of the variance of the run times that the fit explains
    measured: Estimate | None = None  # T alone, where it was measured
    times_measured: int = 0  # single-rank runs that T is the mean of
    borrowed: int = 0  # single-rank runs that C and P were fitted to as well


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
        ValueError: An exchange has no runs.
    """
    single = [run for run in runs if run.exchange == SINGLE and run.t1 is not None]
    fits = {}
    for exchange in EXCHANGES:
        if own := tuple(run for run in runs if run.exchange == exchange):
            fits[exchange] = _with_measured(own, single) if single else _from_times(own)
    if not fits:
        raise ValueError(f"no run of an exchange that joins ranks ({', '.join(EXCHANGES)})")
    return fits


def _from_times(runs: tuple[Run, ...]) -> Fit:
    exchange = runs[0].exchange
    ranks, seconds = ranks_and_seconds(runs)
    columns = model_columns(exchange, ranks)
    full = least_squares(columns, seconds)
    parameters = curve = None
    if is_server(exchange):
        parameters = curve = full.estimate
    elif two := least_squares(columns[:, [0, 2]], seconds).estimate:
        curve = two.mapped(_TWO_TERMS)
    return Fit(
        runs=runs,
        fitted=PARAMETERS,
        squares=full,
        parameters=parameters,
        curve=curve,
        r2=explained(seconds, columns @ full.coefficients),
    )


def _with_measured(runs: tuple[Run, ...], single: Sequence[Run]) -> Fit:
    """Take T from single-rank runs and fit C and P to the rest of the run times.

    Where all runs are on the same number of ranks, the single-rank runs join them: without their
    t1 they are P, as one rank has no communication.
    """
    exchange = runs[0].exchange
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
    if squares.estimate:
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


Curve = Sequence[float]  # (a, b, c) of a/n + b·n + c seconds on n ranks
_FEWEST_RANKS = 2
_EQUAL = 1e-9  # share of their size within which times count as equal
# No cluster has as many ranks; beyond it n and n + 1 would at some point be equal in float64.
_MOST_RANKS = 1e12


def crossovers(curves: Mapping[str, Curve]) -> dict[str, dict[str, Any]]:
    """Compare the curve of each exchange with the others' curves.

    Returns:
        By exchange `{"crossover": {other: n}, "faster_than": {other: [[first, last], …]}}`:
        the ranges of ranks, from 2, on which it is the faster (last is None where the range has
        no end), and the last number of the range that begins at 2 and ends, else None.
    """
    compared = {}
    for name, curve in curves.items():
        ranges = {other: faster_ranges(curve, curves[other]) for other in curves if other != name}
        until = {
            other: faster[0][1] if faster and faster[0][0] == _FEWEST_RANKS else None
            for other, faster in ranges.items()
        }
        compared[name] = {"crossover": until, "faster_than": ranges}
    return compared


def faster_ranges(curve: Curve, against: Curve) -> list[list[int | None]]:
    """Return the ranges [first, last] of n ≥ 2 on which `curve` lies below `against`.

    n times the difference of two curves is a quadratic in n: its sign changes twice at most, and
    only next to a root, so all integers near a root are looked at, which cover each gap.
    """
    inverse, slope, level = (mine - other for mine, other in zip(curve, against, strict=True))

    def is_faster(ranks: int) -> bool:
        size = abs(curve[0]) / ranks + abs(curve[1]) * ranks + abs(curve[2])
        return inverse / ranks + slope * ranks + level < -_EQUAL * size

    starts = {_FEWEST_RANKS}
    for root in np.roots([slope, level, inverse]):
        if abs(root.imag) <= _EQUAL * abs(root) and 0 < root.real < _MOST_RANKS:
            starts |= {int(root.real) + step for step in (-1, 0, 1, 2)}
    ranges: list[list[int | None]] = []
    beginning = None
    for start in sorted(number for number in starts if number >= _FEWEST_RANKS):
        if is_faster(start):
            beginning = start if beginning is None else beginning
        elif beginning is not None:
            ranges.append([beginning, start - 1])
            beginning = None
    if beginning is not None:
        ranges.append([beginning, None])
    return ranges
