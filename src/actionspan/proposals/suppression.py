"""Soft-NMS: proposals that overlap a better one lose score instead of being removed."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from actionspan.arrays import Float64, Int64
from actionspan.proposals.segments import Row, overlap
from actionspan.proposals.settings import SuppressionSettings


def soft_nms(
    segments: ArrayLike,
    scores: ArrayLike,
    settings: SuppressionSettings | None = None,
    *,
    duration: float = 1.0,
) -> tuple[Int64, Float64]:
    """Choose proposals best first, each decaying the rest that overlap it much (BSN, 2018).

    The best remaining proposal is taken. Every other whose tIoU with it exceeds
    low_threshold + slope · width, where width is the length of the best as a share of the full
    width, has its score multiplied by exp(−tIoU² / epsilon). Then the next best is taken, until
    `keep` are. Proposals of equal score are in order of their start, then of their end, so that the
    order of the input does not matter.

    Args:
        segments: (N, 2) starts and ends, start ≤ end, in the unit of `duration` (and in seconds
            where the settings give the full width in seconds).
        scores: (N,) scores, 0 or more.
        settings: Thresholds and how many to keep.
        duration: The video's length, the full width unless the settings give one. 1 for segments
            in 0…1 of the video.

    Returns:
        kept: (K,) rows of the input in descending order of their new scores, K ≤ keep.
        scores: (K,) their new scores.

    Raises:
        ValueError: A segment is reversed or not finite, or a score negative or not finite; the
            message names the first such row, counted from 0.
    """
    # check and sort the input
    settings = settings or SuppressionSettings()
    times, given = np.asarray(segments, np.float64), np.asarray(scores, np.float64)
    if not times.size:
        times = times.reshape(0, 2)
    _check(times, given)
    if not (np.isfinite(duration) and duration > 0):
        raise ValueError(f"duration: {duration!r} is not allowed; use a number above 0")
    order = np.lexsort((times[:, 1], times[:, 0], -given))
    start, end = times[order, 0], times[order, 1]
    remaining = given[order]
    full_width = settings.full_width_seconds or duration
    thresholds = settings.low_threshold + settings.slope * ((end - start) / full_width)
    # take the best and decay its neighbours
    keep = min(settings.keep, len(order))
    kept = np.empty(keep, np.int64)
    kept_scores = np.empty(keep)
    for place in range(keep):
        best = int(remaining.argmax())
        kept[place] = best
        kept_scores[place] = remaining[best]
        remaining[best] = -1.0  # taken: below any score
        iou = overlap(start, end, start[best], end[best])
        near = ((iou > thresholds[best]) & (remaining >= 0)).nonzero()[0]
        remaining[near] *= np.exp(-(iou[near] ** 2) / settings.epsilon)
    return order[kept], kept_scores


def suppress_rows(
    rows: Sequence[Row], duration: float | None, settings: SuppressionSettings
) -> list[Row]:
    """Apply Soft-NMS to one video's proposals; without a duration it ends with the last of them."""
    if not rows:
        return []
    segments, given = [row["segment"] for row in rows], [row["score"] for row in rows]
    if duration is None:
        latest = float(max(end for _, end in segments))
        duration = latest if latest > 0 else 1.0
    kept, scores = soft_nms(segments, given, settings, duration=duration)
    pairs = zip(kept.tolist(), scores.tolist(), strict=True)
    return [{**rows[int(row)], "score": score} for row, score in pairs]


def _check(times: Float64, scores: Float64) -> None:
    if times.ndim != 2 or times.shape[1] != 2:
        raise ValueError(f"segments: shape {times.shape} is not (N, 2)")
    if scores.shape != (len(times),):
        raise ValueError(f"scores: shape {scores.shape} does not fit {len(times)} segments")
    for row in np.flatnonzero(~(np.isfinite(times).all(axis=1) & (times[:, 0] <= times[:, 1]))):
        wrong = f"segment {times[row].tolist()} is not two finite numbers, start <= end"
        raise ValueError(f"row {row}: {wrong}")
    for row in np.flatnonzero(~(np.isfinite(scores) & (scores >= 0))):
        raise ValueError(f"row {row}: score {float(scores[row])} is not a number of 0 or more")
