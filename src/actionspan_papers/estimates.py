"""Means with their intervals, as the papers' tables and claims have them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from actionspan.arrays import Float64
from actionspan_papers.resampling import interval, seeds_half_width


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A mean, or a difference of two, and its interval; NaN where there is none."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    why_not: str = ""
    """Why there is no value, in a few words."""
    form: str = ".2f"

    def cells(self) -> list[str]:
        """Return value, low and high as they are written, empty where there is none."""
        numbers = (self.value, self.low, self.high)
        return ["" if math.isnan(number) else f"{number:{self.form}}" for number in numbers]

    def __str__(self) -> str:
        value, low, high = self.cells()
        return f"{value} [{low}, {high}]" if low else value or self.why_not

    def percentage(self) -> "Estimate":
        """Return the same with an interval that does not leave 0 to 100."""
        low, high = max(self.low, min(self.value, 0)), min(self.high, max(self.value, 100))
        return self if math.isnan(self.low) else replace(self, low=low, high=high)


def over_seeds(
    groups: Sequence[Float64], confidence: float, value: float = math.nan, form: str = ".2f"
) -> Estimate:
    """Return the mean over seeds with Student's t interval, which one seed does not have.

    Args:
        groups: As for `seeds_half_width`.
        confidence: Level of the interval, in (0, 1).
        value: The difference of the means of two groups; by default the mean of the only group.
        form: How numbers are written.
    """
    value = float(groups[0].mean()) if math.isnan(value) else value
    if max(map(len, groups)) < 2:
        return Estimate(value=value, form=form)
    half = seeds_half_width(groups, confidence)
    return Estimate(value=value, low=value - half, high=value + half, form=form)


def over_seeds_words(confidence: float) -> str:
    """Return the sentence that explains the cells of `over_seeds`."""
    return (
        f"Mean over seeds and, in brackets, the {100 * confidence:.4g} % interval over seeds "
        "(Student's t); one seed has none."
    )


def over_samples_and_seeds(
    value: float, groups: Sequence[Float64], drawn: Float64, samples: int, confidence: float
) -> Estimate:
    """Return a value with its interval over samples (videos or clips) and seeds.

    It is NaN where the value is; the arguments are those of `interval` and `seeds_half_width`.
    """
    if math.isnan(value):
        return Estimate()
    half = seeds_half_width(groups, confidence)
    low, high = interval(value, drawn, samples, half, confidence)
    return Estimate(value=value, low=low, high=high)


def alike(margin: float, difference: Estimate | str) -> Estimate | str:
    """Return the margin less the size of a difference: above 0 where neither is better."""
    if isinstance(difference, str):
        return difference
    low, high = difference.low, difference.high
    most = max(abs(low), abs(high))
    least = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
    value = margin - abs(difference.value)
    return replace(difference, value=value, low=margin - most, high=margin - least)


def at_most(lost: float, difference: Estimate | str) -> Estimate | str:
    """Return a difference plus a margin: above 0 where no more than `lost` is lost."""
    if isinstance(difference, str):
        return difference
    value, low, high = (lost + each for each in (difference.value, difference.low, difference.high))
    return replace(difference, value=value, low=low, high=high)
