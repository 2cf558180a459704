"""How far AUC would move on other videos: a bootstrap interval over the videos."""

import numpy as np

from actionspan.evaluation.activitynet import AVERAGE_NUMBERS, AverageRecall
from actionspan.evaluation.recall import blocks


def auc_interval(
    result: AverageRecall, *, resamples: int = 1000, confidence: float = 0.95, seed: int = 1
) -> tuple[float, float]:
    """Return the percentile bootstrap interval of AUC, in percent, resampling videos.

    Each video keeps the budgets it has in the full set. Where all videos have equally many
    proposals (the common case) that is exact; where they do not, a resample would shift all
    budgets a little, and this part of the variation is left out.
    """
    # AUC is a ratio of two sums over videos: the area under hits against AN, and the instances.
    areas = np.empty(len(result.hits))  # (I,)
    for rows in blocks(len(areas)):
        under = np.trapezoid(result.hits[rows], AVERAGE_NUMBERS, axis=1)
        areas[rows] = 100 * under / AVERAGE_NUMBERS[-1]
    video_areas = result.sums_by_video(areas)  # (V,)
    generator = np.random.default_rng(seed)
    values = np.empty(resamples)
    for resample in range(resamples):
        drawn = generator.integers(len(video_areas), size=len(video_areas))
        values[resample] = video_areas[drawn].sum() / result.instances[drawn].sum()
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
