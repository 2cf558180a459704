"""Linear least squares that says what the data determine, and intervals of what they do."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from actionspan.arrays import Float64

Interval = tuple[float, float]

CONFIDENCE = 0.95
# A singular value this much smaller than the largest comes from rounding, not from the data.
RANK_TOLERANCE = 1e-10


@dataclass(frozen=True)
class Error:
    """One independent source of error of an estimate."""

    covariance: Float64
    """(k, k); where `degrees` is 0, known only up to a factor."""
    degrees: int
    """Degrees of freedom the covariance was estimated with."""


@dataclass(frozen=True)
class Estimate:
    """Values with the errors they carry."""

    values: Float64
    """(k,)"""
    errors: tuple[Error, ...]

    def value(self, weights: Sequence[float]) -> float:
        """Return the weighted sum of the values."""
        return float(np.asarray(weights) @ self.values)

    def interval(self, weights: Sequence[float]) -> Interval | None:
        """Return the confidence interval of a weighted sum; None where its error is not known.

        The degrees of freedom of several errors together are those of Welch and Satterthwaite.
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
        value = self.value(weights)
        if total == 0.0:
            return (value, value)
        half = float(stdtrit(total**2 / spread, (1 + CONFIDENCE) / 2)) * math.sqrt(total)
        return (value - half, value + half)

    def mapped(self, matrix: Float64) -> "Estimate":
        """Return the estimate of `matrix @ values`; matrix is (j, k)."""
        errors = tuple(
            Error(matrix @ error.covariance @ matrix.T, error.degrees) for error in self.errors
        )
        return Estimate(matrix @ self.values, errors)


@dataclass(frozen=True, kw_only=True)
class LeastSquares:
    """A fit of `design @ coefficients` to values, and how well the design determines it."""

    coefficients: Float64
    """(k,), those of least norm where several fit equally well."""
    rank: int
    """Number of independent columns of the design."""
    singular_values: Float64
    """(k,) of the design with its columns scaled to norm 1, in falling order."""
    residual_sum: float
    """Sum of squared residuals."""
    degrees: int
    """Rows less rank."""
    inverse: Float64
    """(k, k), (XᵀX)⁻¹: the covariance of the coefficients for residuals of variance 1."""

    @property
    def determined(self) -> bool:
        """Whether exactly one set of coefficients fits best."""
        return self.rank == len(self.coefficients)

    @property
    def condition(self) -> float | None:
        """Condition number of the scaled design; None where it is infinite."""
        if not self.determined:
            return None
        return float(self.singular_values[0] / self.singular_values[-1])

    @property
    def estimate(self) -> Estimate:
        """The coefficients of a determined fit, with the error that its residuals show."""
        variance = self.residual_sum / self.degrees if self.degrees else 1.0
        return Estimate(self.coefficients, (Error(variance * self.inverse, self.degrees),))


def least_squares(design: Float64, values: Float64) -> LeastSquares:
    """Fit values by a linear model, with equal weights.

    Args:
        design: (m, k) with m ≥ 1.
        values: (m,).
    """
    rows, columns = design.shape
    norms = np.linalg.norm(design, axis=0)
    norms[norms == 0] = 1.0
    left, singular, right = np.linalg.svd(design / norms, full_matrices=False)
    rank = int(np.count_nonzero(singular > RANK_TOLERANCE * singular[0]))
    singular[rank:] = 0.0
    if rank == columns:
        inverse_root = (right / singular[:, None]).T / norms[:, None]  # (k, k)
        coefficients = inverse_root @ (left.T @ values)
        inverse = inverse_root @ inverse_root.T
    else:
        coefficients = np.linalg.lstsq(design, values, rcond=RANK_TOLERANCE)[0]
        inverse = np.full((columns, columns), np.nan)
    residuals = values - design @ coefficients
    return LeastSquares(
        coefficients=coefficients,
        rank=rank,
        singular_values=np.pad(singular, (0, columns - len(singular))),
        residual_sum=float(residuals @ residuals),
        degrees=rows - rank,
        inverse=inverse,
    )


def explained(values: Float64, predicted: Float64) -> float | None:
    """Return r², the share of the variance of `values` that is predicted; None without variance."""
    about_mean = float(np.square(values - values.mean()).sum())
    if about_mean <= (1e-12 * float(np.abs(values).max())) ** 2 * len(values):
        return None
    return 1 - float(np.square(values - predicted).sum()) / about_mean
