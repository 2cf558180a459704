"""Means with their intervals over videos and seeds, as the papers' tables and claims have them.

The videos' part is a bootstrap. Videos are drawn once for all methods, so that the difference of
two methods is that on the same videos. The seeds' part is Student's t interval of the mean over
seeds, since a bootstrap of two or three seeds hardly knows their spread. Both parts are combined in
quadrature, each side separately (the method of variance estimates recovery: Zou and Donner,
Statistics in Medicine 27, 2008).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from scipy.special import stdtrit

from actionspan.arrays import Float64, Int64


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A mean, or a difference of two, and its interval; NaN where there is none."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    why_not: str = ""
    """Why the value is missing, in a few words."""
    form: str = ".2f"
    samples: int = 0
    """How many units the interval is over, if that is known."""
    unit: str = ""

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


def draw_videos(videos: int, resamples: int, seed: int) -> Int64:
    """Return (B, V) how often each of V videos is in each resample of V videos."""
    generator = np.random.default_rng([seed, 0])
    return generator.multinomial(videos, np.full(videos, 1 / videos), size=resamples)


def seed_scores(values: Float64, instances: Int64) -> Float64:
    """Return (S, K) each seed's instance-weighted means over videos, NaN for a seed without values.

    Values are (S, V, K): K measures of each video for each seed, NaN where a video has none.
    Instances are (V,): how many each video has.
    """
    once = np.ones((1, values.shape[1]), dtype=np.int64)
    scores = [resampled_scores(rows[None], instances, once)[0] for rows in values]
    return np.array(scores).reshape(len(values), values.shape[2])


def resampled_scores(values: Float64, instances: Int64, drawn_videos: Int64) -> Float64:
    """Return (B, K) the mean over seeds of those means, for each resample of the videos.

    It is NaN where some seed has no value of any video that was drawn. Values and instances are
    as in `seed_scores`, drawn videos (B, V) as in `draw_videos`.
    """
    counts = drawn_videos.astype(np.float64)  # (B, V), for a fast matrix product
    total = np.zeros((len(counts), values.shape[2]))
    for rows in values:
        present = ~np.isnan(rows)  # (V, K)
        weights = instances[:, None] * present
        sums = counts @ np.where(present, weights * rows, 0.0)  # (B, K)
        weight = counts @ weights
        total += np.divide(sums, weight, out=np.full_like(sums, np.nan), where=weight > 0)
    scores: Float64 = total / len(values)
    return scores


def seeds_half_width(groups: Sequence[Float64], confidence: float) -> float:
    """Return half the width of the t interval of a sum or difference of means over seeds.

    Args:
        groups: A number for each seed, (S,) each, of one method or of two that were trained apart
            (Welch's interval). For two that share their seeds, give the differences as one group.
            A group of one seed has no spread and adds nothing.
        confidence: Of the interval, in (0, 1).
    """
    groups = [group for group in groups if len(group) > 1]
    parts = [(float(group.var(ddof=1)) / len(group), len(group) - 1) for group in groups]
    variance = sum(part for part, _ in parts)
    if variance == 0:
        return 0.0
    # Welch and Satterthwaite; in parts of the sum: their squares cannot underflow
    degrees = 1 / sum((part / variance) ** 2 / free for part, free in parts)
    return float(stdtrit(degrees, (1 + confidence) / 2)) * math.sqrt(variance)


def percentile_interval(values: Float64, confidence: float) -> tuple[float, float]:
    """Return the ends of the middle `confidence` of resampled values, NaN ones left out."""
    if np.isnan(values).all():
        return math.nan, math.nan
    low, high = np.nanquantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def interval(
    value: float, drawn: Float64, videos: int, seeds_half: float, confidence: float
) -> tuple[float, float]:
    """Return the interval of a value over videos and seeds.

    The bootstrap's part is stretched by √(V/(V - 1)) · t/z with V - 1 degrees of freedom, without
    which it is too narrow for few videos (Hesterberg, The American Statistician 69, 2015).

    Args:
        value: Of all videos.
        drawn: (B,) the value of each resample of the videos.
        videos: V, how many videos there are.
        seeds_half: What `seeds_half_width` returned; 0 leaves the interval over videos.
        confidence: In (0, 1).
    """
    # sums in another order differ by some 1e-15, and an interval of exactly 0 is not above 0
    low, high = percentile_interval(np.round(drawn - value, 9), confidence)
    stretch = 1.0
    if videos > 1:
        probability = (1 + confidence) / 2
        stretch = math.sqrt(videos / (videos - 1))
        stretch *= float(stdtrit(videos - 1, probability)) / NormalDist().inv_cdf(probability)
    # a value outside the middle of its own resamples still lies inside its interval
    below, above = max(-low, 0.0) * stretch, max(high, 0.0) * stretch
    ends = value - math.hypot(below, seeds_half), value + math.hypot(above, seeds_half)
    return round(ends[0], 9), round(ends[1], 9)


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
    low, high, seeds = value - half, value + half, max(map(len, groups))
    return Estimate(value=value, low=low, high=high, form=form, samples=seeds, unit="seeds")


def over_seeds_words(confidence: float) -> str:
    """Return the sentence that explains the cells of `over_seeds`."""
    return (
        f"Mean over seeds and, in brackets, the {100 * confidence:.4g} % interval over seeds "
        "(Student's t); one seed has none."
    )


@dataclass(frozen=True, kw_only=True)
class Resampled:
    """A measure of one method, by seed and on resamples of the videos or clips."""

    seeds: Float64
    """(S,) of each seed, on all samples."""
    drawn: Float64
    """(B,) mean over the seeds on each resample."""
    samples: int
    """V, how many videos or clips there are; `unit` is their name."""
    unit: str = "videos"

    def estimate(self, confidence: float) -> Estimate:
        """Return the mean and its interval over samples and seeds; NaN where some seed has none."""
        return self._estimate(float(self.seeds.mean()), [self.seeds], self.drawn, confidence)

    def above(self, other: "Resampled", confidence: float, *, paired: bool = True) -> Estimate:
        """Return how much higher this is than another of the same samples.

        Their seeds are `paired` where both share them. Nothing is compared with itself: the
        estimate is empty then.
        """
        if other is self:
            return Estimate()
        value, drawn = (
            float(self.seeds.mean()) - float(other.seeds.mean()),
            self.drawn - other.drawn,
        )
        groups = [self.seeds - other.seeds] if paired else [self.seeds, other.seeds]
        return self._estimate(value, groups, drawn, confidence)

    def _estimate(
        self, value: float, groups: Sequence[Float64], drawn: Float64, confidence: float
    ) -> Estimate:
        if math.isnan(value):
            return Estimate()
        half = seeds_half_width(groups, confidence)
        low, high = interval(value, drawn, self.samples, half, confidence)
        return Estimate(value=value, low=low, high=high, samples=self.samples, unit=self.unit)


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
