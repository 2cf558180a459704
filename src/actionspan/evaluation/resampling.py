"""Bootstrap over videos and seeds: how far a figure would move with other videos and trainings.

Videos are drawn once a resample, for all methods, so that the difference of two methods is that on
the same videos; seeds are drawn for each method by itself, because two trainings share nothing
but their number.
"""

import zlib

import numpy as np
from numpy.typing import NDArray

from actionspan.evaluation.activitynet import Floats, Integers


def draw_videos(videos: int, resamples: int, seed: int) -> Integers:
    """Return (B, V) how often each of V videos stands in each resample of V videos."""
    generator = np.random.default_rng([seed, 0])
    drawn: Integers = generator.multinomial(videos, np.full(videos, 1 / videos), size=resamples)
    return drawn


def draw_seeds(method: str, seeds: int, resamples: int, seed: int) -> Integers:
    """Return (B, S) how often each seed of a method stands in each resample of S seeds.

    The draw depends on the method's name, so that its interval is the same in every table,
    whichever methods stand beside it.
    """
    generator = np.random.default_rng([seed, 1, zlib.crc32(method.encode())])
    drawn: Integers = generator.multinomial(seeds, np.full(seeds, 1 / seeds), size=resamples)
    return drawn


def mean_scores(values: Floats, instances: Integers) -> Floats:
    """Return (K,) the mean over seeds of the instance-weighted means over videos.

    Args:
        values: (S, V, K) K measures of each video for each seed; NaN where a video has no value.
        instances: (V,) how many instances each video has.

    Returns:
        NaN where some seed has no value at all.
    """
    seeds, videos, _ = values.shape
    once = np.ones((1, videos), dtype=np.int64), np.ones((1, seeds), dtype=np.int64)
    means: Floats = resampled_scores(values, instances, *once)[0]
    return means


def resampled_scores(
    values: Floats, instances: Integers, drawn_videos: Integers, drawn_seeds: Integers
) -> Floats:
    """Return (B, K) the same means for each resample.

    Args:
        values: (S, V, K), as for `mean_scores`.
        instances: (V,).
        drawn_videos: (B, V), what `draw_videos` returned.
        drawn_seeds: (B, S), what `draw_seeds` returned.

    Returns:
        NaN where none of the videos drawn has a value.
    """
    present: NDArray[np.bool_] = ~np.isnan(values)  # (S, V, K)
    weights = instances[:, None] * present  # (S, V, K)
    counts = drawn_videos.astype(np.float64)  # (B, V), for a fast matrix product
    total = np.zeros((len(counts), values.shape[2]))
    for seed in range(len(values)):
        sums = counts @ np.where(present[seed], weights[seed] * values[seed], 0.0)  # (B, K)
        of = counts @ weights[seed]
        means = np.divide(sums, of, out=np.full_like(sums, np.nan), where=of > 0)
        times = drawn_seeds[:, seed, None]  # (B, 1)
        total += np.where(times > 0, times * means, 0.0)
    scores: Floats = total / drawn_seeds.sum(axis=1, keepdims=True)
    return scores


def resampled_means(values: Floats, drawn_seeds: Integers) -> Floats:
    """Return (B,) the means of one number a seed, for each resample of the seeds.

    Args:
        values: (S,).
        drawn_seeds: (B, S), what `draw_seeds` returned.
    """
    means: Floats = (drawn_seeds * values).sum(axis=1) / drawn_seeds.sum(axis=1)
    return means


def percentile_interval(values: Floats, confidence: float) -> tuple[float, float]:
    """Return the ends of the middle `confidence` of resampled values, NaN ones left out."""
    known = values[~np.isnan(values)]
    if not len(known):
        return float("nan"), float("nan")
    low, high = np.quantile(known, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
