"""Student's t distribution, for confidence intervals (SciPy is not among the dependencies)."""

import math
from functools import lru_cache

_SMALLEST = 1e-300
_PRECISION = 1e-15


@lru_cache(maxsize=1024)
def student_quantile(probability: float, degrees: float) -> float:
    """Return the value that a Student t variable stays below with this probability.

    Args:
        probability: In (0, 1).
        degrees: Degrees of freedom, above 0; need not be whole (Welch–Satterthwaite).

    Raises:
        ValueError: A value is out of range.
    """
    if not 0 < probability < 1:
        raise ValueError(f"probability is {probability}; it must lie between 0 and 1")
    if not degrees > 0:
        raise ValueError(f"degrees is {degrees}; it must be above 0")
    if probability < 0.5:
        return -student_quantile(1 - probability, degrees)
    tail = 1 - probability
    low, high = 0.0, 1.0
    while upper_tail(high, degrees) > tail:
        low, high = high, 2 * high
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if upper_tail(middle, degrees) > tail else (low, middle)
    return (low + high) / 2


def upper_tail(value: float, degrees: float) -> float:
    """Return the probability that a Student t variable exceeds `value`, which is at least 0."""
    below = value * value / (degrees + value * value)
    return incomplete_beta(degrees / (degrees + value * value), below, degrees / 2, 0.5) / 2


def incomplete_beta(x: float, rest: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b) by its continued fraction.

    Args:
        x: In [0, 1].
        rest: 1 - x, given apart so that an x close to 1 loses no digits.
        a: First parameter, above 0.
        b: Second parameter, above 0.

    Source: Abramowitz and Stegun, 26.5.8, evaluated by Lentz's method.
    """
    if x <= 0 or rest <= 0:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # the fraction converges quickly on the other side
        return 1 - incomplete_beta(rest, x, b, a)
    front = math.exp(
        math.lgamma(a + b)
        - math.lgamma(a)
        - math.lgamma(b)
        + a * math.log(x)
        + b * math.log(rest)
        - math.log(a)
    )
    upper, lower, value = 1.0, 0.0, 1.0
    for step in range(100_000):
        half = step // 2
        if step == 0:
            term = 1.0
        elif step % 2 == 0:
            term = half * (b - half) * x / ((a + step - 1) * (a + step))
        else:
            term = -(a + half) * (a + b + half) * x / ((a + step - 1) * (a + step))
        lower = 1 / (1 + term * lower or _SMALLEST)
        upper = 1 + term / upper or _SMALLEST
        value *= upper * lower
        if step and abs(upper * lower - 1) < _PRECISION:
            break
    return front * (value - 1)
