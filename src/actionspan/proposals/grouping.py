"""Watershed grouping of a one-dimensional signal (TAG), such as motion or actionness."""

import numpy as np
from numpy.typing import ArrayLike

from actionspan.arrays import Float64, Int64
from actionspan.proposals.settings import GroupingSettings, SuppressionSettings
from actionspan.proposals.suppression import soft_nms


def group_actionness(signal: ArrayLike, thresholds: ArrayLike, tolerances: ArrayLike) -> Int64:
    """Group the parts of a signal above a level, for many levels and tolerances (TAG, 2017).

    At each level the basins are the longest runs of bins at or above it. From each basin on, the
    basins that follow are absorbed in turn while at least the share `tolerance` of the bins from
    the first basin's start to the last basin's end lies in basins. The absorbed range is a segment.

    Args:
        signal: (N,) values, e.g. actionness or motion.
        thresholds: Levels, in the unit of the signal.
        tolerances: Shares in 0…1.

    Returns:
        (K, 2) the segments of all levels and tolerances, sorted, none twice: the first bin, and the
        bin after the last.

    Raises:
        ValueError: The signal is not finite.
    """
    values = _finite(signal)
    limits = np.asarray(tolerances, np.float64).reshape(-1, 1, 1)
    segments = [np.zeros((0, 2), np.int64)]
    for threshold in np.asarray(thresholds, np.float64).ravel():
        # find the basins
        above = np.concatenate([[0], values >= threshold, [0]]).astype(np.int8)
        step = np.diff(above)
        starts, ends = (step == 1).nonzero()[0], (step == -1).nonzero()[0]  # (B,) basins
        if not len(starts):
            continue
        # absorb those that follow, up to the first that leaves too small a share
        inside = np.concatenate([[0], np.cumsum(ends - starts)])
        share = (inside[None, 1:] - inside[:-1, None]) / np.maximum(ends - starts[:, None], 1)
        follows = np.tri(len(starts), k=-1, dtype=bool).T  # (B, B): the column's basin is later
        stops = (share < limits) & follows  # (tolerances, B, B)
        count = np.where(stops.any(axis=2), stops.argmax(axis=2), len(starts))
        first = np.broadcast_to(starts, count.shape)
        segments.append(np.stack([first, ends[count - 1]], axis=2).reshape(-1, 2))
    return np.unique(np.concatenate(segments), axis=0)


def group_proposals(
    signal: ArrayLike,
    duration_seconds: float,
    settings: GroupingSettings | None = None,
    suppression_settings: SuppressionSettings | None = None,
    *,
    stretch: bool = True,
) -> tuple[Float64, Float64]:
    """Return one video's proposals from a signal such as motion or actionness.

    The signal has N values of equal bins that cover the video; a segment's score is their mean
    inside. Motion is first stretched to 0…1 over the video, since its scale depends on the camera;
    a constant signal, in which nothing stands out, then gives no proposals. Actionness, which means
    the same in every video, is taken as it is (`stretch=False`, values in 0…1).

    Returns:
        (K, 2) segments in seconds, best first, and their (K,) scores.

    Raises:
        ValueError: The signal is not finite.
    """
    settings = settings or GroupingSettings()
    values = _finite(signal)
    if stretch:
        low, high = values.min(initial=np.inf), values.max(initial=-np.inf)
        if not low < high:
            return np.zeros((0, 2)), np.zeros(0)
        values = (values - low) / (high - low)
    # group, score by the mean inside, suppress
    bins = group_actionness(values, _inside(settings.level_step), _inside(settings.tolerance_step))
    below = np.concatenate([[0.0], np.cumsum(values)])
    scores = (below[bins[:, 1]] - below[bins[:, 0]]) / (bins[:, 1] - bins[:, 0])
    segments = bins / len(values) * duration_seconds
    kept, scores = soft_nms(segments, scores, suppression_settings, duration=duration_seconds)
    return segments[kept], scores


def _finite(signal: ArrayLike) -> Float64:
    values = np.asarray(signal, np.float64).ravel()
    if not np.isfinite(values).all():
        raise ValueError("signal: not all values are finite")
    return values


def _inside(step: float) -> Float64:
    """Return the multiples of `step` strictly between 0 and 1."""
    steps: Float64 = step * np.arange(1.0, round(1 / step) + 1)
    return steps[steps < 1 - 1e-9]
