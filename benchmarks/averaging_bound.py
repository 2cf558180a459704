r"""How often to average: the bounds of theorems 1 and 2 of paper 003.

    python benchmarks/averaging_bound.py --gap 2 --smoothness 10 --variance 4 --learners 4 \
        --step-size 0.05 --batch 16 --steps 100

prints the K with the least bound of theorem 1. Both theorems bound the mean of ‖∇F‖² at the
averaged models, for plain SGD with a fixed step size γ and a fixed batch B of each of P learners
that make K steps between averages. They need constants that are rarely known (`estimate_constants`
gives rough ones), and AAVG is run with Adam. They are a guide to where a good K may lie, and no
more.
"""

import argparse
import math
from dataclasses import MISSING, dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True, kw_only=True)
class Training:
    """What the bounds depend on besides K and the length of training."""

    gap: float
    """F(w₁) - F*: how far the loss at the start is above its least value."""
    smoothness: float
    """L, the Lipschitz constant of the gradient."""
    variance: float
    """M: E‖∇F(w; ξ)‖² - ‖∇F(w)‖² ≤ M + M_V·‖∇F(w)‖² for the gradient of one sample."""
    variance_growth: float = 0.0
    """M_V. The paper's M_G, which it does not define, is 1 + M_V, as in the analysis it cites."""
    learners: int
    """P."""
    step_size: float
    """γ."""
    batch: int
    """B, samples of each learner in a step."""

    @property
    def product(self) -> float:
        """Return a = P·L·γ, which decides what theorem 2 says."""
        return self.learners * self.smoothness * self.step_size


def first_bound(training: Training, interval: Any, averages: Any) -> Any:
    """Return the bound of theorem 1 for K (`interval`) and N (`averages`), numbers or arrays."""
    c, k = training, interval
    step = c.smoothness * c.step_size
    descent = 2 * c.gap / (averages * (k + 1) * c.step_size)
    noise = step * c.variance / c.batch * (1 / c.learners + step * k / 2)
    return (descent + noise) * _ratio(c.product, k)


def first_holds(training: Training, interval: Any) -> Any:
    """Return whether the batch is large enough for theorem 1: B ≥ LγM_G(LγK + 1/P)."""
    step = training.smoothness * training.step_size
    growth = 1 + training.variance_growth
    return training.batch >= step * growth * (step * interval + 1 / training.learners)


def second_bound(training: Training, interval: Any, steps: float) -> Any:
    """Return B(K) of theorem 2, for S = N·K steps of each learner: f(K) + g(K).

    It is the first bound with 1/P replaced by LKγ/2, which is no less where `second_holds`.
    """
    c = training
    alpha = 2 * c.gap / (steps * c.step_size)
    beta = (c.smoothness * c.step_size) ** 2 * c.variance / c.batch
    return descent_part(alpha, c.product, interval) + noise_part(beta, c.product, interval)


def second_holds(training: Training, interval: Any) -> Any:
    """Return whether theorem 2's conditions hold: LKγ/2 ≥ 1/P and B ≥ 3L²Kγ²M_G/2.

    The first says K ≥ 2/a: where a ≤ 1 it excludes the K = 1 that the theorem names as the best.
    """
    step = training.smoothness * training.step_size
    growth = 1 + training.variance_growth
    return (step * interval / 2 >= 1 / training.learners) & (
        training.batch >= 3 * step**2 * interval * growth / 2
    )


def descent_part(alpha: float, a: float, k: Any) -> Any:
    """Return f(K) of theorem 2's proof, which falls with K where a > 1, towards α."""
    return alpha * k / (k + 1) * _ratio(a, k)


def noise_part(beta: float, a: float, k: Any) -> Any:
    """Return g(K) of theorem 2's proof, which at last grows like βK."""
    return beta * k * _ratio(a, k)


def noise_minimum(a: float) -> float:
    """Return K̂, where g is least if a > 1: below 2; below 1 if a < 1.618."""
    return (a - 1 + math.sqrt(a * (a - 1))) / a


def _ratio(a: float, k: Any) -> Any:
    return (a * k + 1) / (a * (k - 1) + 1)


class _Suggestion(NamedTuple):
    """A K, and what speaks for it."""

    interval: int
    """K of the least bound of theorem 1, among those for which it holds."""
    bound: float
    """That bound."""
    product: float
    """a = P·L·γ."""
    theorem_says_one: bool
    """Whether theorem 2 names K = 1 (a ≤ 1); else it promises a best K above 1.

    Over whole numbers K = 1 is indeed best where a ≤ 1. Where a > 1 the promise does not always
    hold: with a small gap, or many steps, K = 1 can be the best still.
    """


def suggest_interval(training: Training, steps: int) -> _Suggestion:
    """Return the K with the least bound of theorem 1 when each learner makes `steps` steps.

    Every K from 1 to `steps` is tried. (Theorem 2's own bound is looser and has one condition
    more, which leaves no small K where a is small.)

    Raises:
        ValueError: The batch is too small for theorem 1 whatever K.
    """
    intervals = np.arange(1, steps + 1, dtype=np.float64)
    bounds = first_bound(training, intervals, steps / intervals)
    bounds = np.where(first_holds(training, intervals), bounds, np.inf)
    best = int(np.argmin(bounds))
    if not np.isfinite(bounds[best]):
        raise ValueError(
            f"batch {training.batch} is too small for theorem 1 with step size "
            f"{training.step_size}; lower it"
        )
    return _Suggestion(best + 1, float(bounds[best]), training.product, training.product <= 1)


def estimate_constants(points: ArrayLike, gradients: ArrayLike, batch: int) -> tuple[float, float]:
    """Return rough values of L and M from gradients along a path of training.

    L is the largest ‖∇F(w) - ∇F(w')‖ / ‖w - w'‖ of neighbouring points: a lower bound, since
    elsewhere the gradient may change faster. M is the largest variance of the gradient of one
    sample at any of the points, taken as the batch size times that of a batch, with M_V = 0.

    Args:
        points: (n, d) parameters, n ≥ 2, no two neighbours alike.
        gradients: (n, b, d) gradients of the mean loss of b ≥ 2 batches, the same batches at every
            point, drawn independently.
        batch: How many samples a batch has.
    """
    points, gradients = np.asarray(points, np.float64), np.asarray(gradients, np.float64)
    moved = np.linalg.norm(np.diff(points, axis=0), axis=1)
    changed = np.linalg.norm(np.diff(gradients.mean(axis=1), axis=0), axis=1)
    variance = batch * gradients.var(axis=1, ddof=1).sum(axis=1)
    return float((changed / moved).max()), float(variance.max())


def main() -> None:
    """Print the best K, its bound, and a."""
    parser = argparse.ArgumentParser(description="How often to average, by theorem 1 of paper 003.")
    for each in fields(Training):
        required = each.default is MISSING
        default = None if required else each.default
        flag = f"--{each.name.replace('_', '-')}"
        parser.add_argument(flag, type=each.type, required=required, default=default)
    parser.add_argument("--steps", type=int, required=True, help="of each learner")
    given = vars(parser.parse_args())
    steps = given.pop("steps")
    found = suggest_interval(Training(**given), steps)
    print(f"K = {found.interval}: bound {found.bound:.6g}, a = PLγ = {found.product:.4g}")


if __name__ == "__main__":
    main()
