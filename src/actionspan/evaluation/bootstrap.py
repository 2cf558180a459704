"""How far recall would move on other videos: bootstrap intervals over the videos."""

from typing import NamedTuple

import numpy as np

from actionspan.arrays import Float64
from actionspan.evaluation.activitynet import AVERAGE_NUMBERS, AverageRecall
from actionspan.evaluation.recall import blocks


class Intervals(NamedTuple):
    """Lower and upper ends of percentile intervals."""

    auc: tuple[float, float]  # in percent
    average_recall: Float64  # (2, 100) at AN = 1 … 100
    recall: Float64  # (2, K) at AN = 100 and each tIoU


def recall_intervals(
    result: AverageRecall, *, resamples: int = 1000, confidence: float = 0.95, seed: int = 1
) -> Intervals:
    """Return the percentile bootstrap intervals of AUC and of both recall curves.

    Videos are resampled; a curve's interval is that of each of its points alone. Each video keeps
    the budgets it has in the full set. Where all videos have equally many proposals (the common
    case) that is exact; where they do not, a resample would shift all budgets a little, and this
    part of the variation is left out.
    """
    # All are ratios of two sums over videos: of what is found, or the area under it, and instances.
    areas = np.empty(len(result.hits))  # (I,)
    for rows in blocks(len(areas)):
        under = np.trapezoid(result.hits[rows], AVERAGE_NUMBERS, axis=1)
        areas[rows] = 100 * under / AVERAGE_NUMBERS[-1]
    video_areas = result.sums_by_video(areas)  # (V,)
    found = (result.best_tiou[:, -1:] >= result.thresholds).astype(np.float64)  # (I, K)
    numbers = result.hits.shape[1]
    sums = np.hstack([result.sums_by_video(result.hits), result.sums_by_video(found)])  # (V, 100+K)
    generator = np.random.default_rng(seed)
    values = np.empty(resamples)
    curves = np.empty((resamples, sums.shape[1]))
    for resample in range(resamples):
        drawn = generator.integers(len(video_areas), size=len(video_areas))
        instances = result.instances[drawn].sum()
        values[resample] = video_areas[drawn].sum() / instances
        curves[resample] = np.bincount(drawn, minlength=len(sums)) @ sums / instances
    ends = [(1 - confidence) / 2, (1 + confidence) / 2]
    low, high = np.quantile(values, ends)
    bands = np.quantile(curves, ends, axis=0)
    return Intervals((float(low), float(high)), bands[:, :numbers], bands[:, numbers:])
