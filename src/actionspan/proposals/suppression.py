"""Soft-NMS: proposals that overlap a better one lose score instead of being removed."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from actionspan.arrays import Float64, Int64
from actionspan.proposals.segments import Row
from actionspan.proposals.settings import SuppressionSettings

TOGETHER = 32  # videos: their arrays fit into a core's cache


def soft_nms(
    segments: ArrayLike,
    scores: ArrayLike,
    settings: SuppressionSettings | None = None,
    *,
    duration: float = 1.0,
) -> tuple[Int64, Float64]:
    """Choose proposals best first, each decaying the rest that overlap it much (BSN, 2018).

    The best remaining proposal is taken. Every other that overlaps it by a tIoU above
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
    return soft_nms_of_many([(segments, scores, duration)], settings)[0]


Ranked = tuple[Int64, Float64]


def soft_nms_of_many(
    videos: Iterable[tuple[ArrayLike, ArrayLike, float]],
    settings: SuppressionSettings | None = None,
) -> list[Ranked]:
    """Return what `soft_nms` gives for each of many videos: segments, scores and duration.

    Videos take their steps together, as most of a step's time is not spent on numbers.
    """
    settings = settings or SuppressionSettings()
    each = [_sorted(*video, settings) for video in videos]
    parts = (each[first : first + TOGETHER] for first in range(0, len(each), TOGETHER))
    return [ranked for part in parts for ranked in _take(part, settings)]


class _Sorted(NamedTuple):
    """One video's proposals, best first."""

    order: Int64
    start: Float64
    end: Float64
    scores: Float64
    thresholds: Float64


def _sorted(
    segments: ArrayLike, scores: ArrayLike, duration: float, settings: SuppressionSettings
) -> _Sorted:
    """Check and sort the input."""
    times, given = np.asarray(segments, np.float64), np.asarray(scores, np.float64)
    if not times.size:
        times = times.reshape(0, 2)
    _check(times, given)
    if not (np.isfinite(duration) and duration > 0):
        raise ValueError(f"duration: {duration!r} is not allowed; use a number above 0")
    order = np.argsort(-given)
    ranked = given[order]
    if (ranked[1:] == ranked[:-1]).any():  # rare, and eight times slower
        order = np.lexsort((times[:, 1], times[:, 0], -given))
    start, end = times[order].T
    full_width = settings.full_width_seconds or duration
    thresholds = settings.low_threshold + settings.slope * ((end - start) / full_width)
    return _Sorted(order, start, end, ranked, thresholds)


_LIKELY = 9  # times `keep`: the best proposals, among which those that are taken nearly always are
_STEPS = 30  # until arrays are made smaller


def _take(videos: Sequence[_Sorted], settings: SuppressionSettings) -> list[Ranked]:
    """Take the best of each video and decay its neighbours, until `keep` are taken.

    The unlikely proposals and what sinks below them are given up, so that steps are short. A video
    that has to take less than them after all begins again, and gives up nothing.
    """
    likely = _LIKELY * settings.keep
    ranked = _take_likely(videos, likely, settings)
    for row, video in enumerate(videos):
        if len(video.order) > likely and ranked[row][1][-1] < video.scores[likely]:
            ranked[row] = _take_likely([video], len(video.order), settings)[0]
    return ranked


def _take_likely(
    videos: Sequence[_Sorted], likely: int, settings: SuppressionSettings
) -> list[Ranked]:
    """Take the best of each video; proposals below its first unlikely one may be given up."""
    # a row a video; absent or taken places overlap nothing and are below any score
    longest = max(len(video.order[:likely]) for video in videos)
    arrays = [np.full((len(videos), longest), each) for each in (0, np.inf, -np.inf, -1.0, 0.0)]
    floors = np.zeros((len(videos), 1))
    for row, video in enumerate(videos):
        for array, values in zip(arrays, video, strict=True):
            array[row, : len(values)] = values[:likely]
        floors[row] = video.scores[likely] if likely < len(video.scores) else 0.0
    keep = min(settings.keep, longest)
    kept, scores = np.empty((len(videos), keep), np.int64), np.empty((len(videos), keep))
    with np.errstate(invalid="ignore", divide="ignore"):
        for place in range(keep):
            if place % _STEPS == 0:
                if place:
                    low = arrays[3] < floors
                    most = max(1, (~low).sum(axis=1).max())
                    left = np.argsort(low, axis=1, kind="stable")[:, :most]
                    arrays = [np.take_along_axis(array, left, axis=1) for array in arrays]
                _, start, end, remaining, _ = arrays
                shared, hull = np.empty((2, *start.shape))
                rows = start.shape[1] * np.arange(len(videos))
                order, starts, ends, flat, least, flat_iou = (
                    array.reshape(-1) for array in (*arrays, shared)
                )
            at = rows + remaining.argmax(axis=1)
            kept[:, place], scores[:, place] = order.take(at), flat.take(at)
            first, last = starts.take(at)[:, None], ends.take(at)[:, None]
            starts[at], ends[at], flat[at] = np.inf, -np.inf, -1.0
            # `arrays.overlap` in place; without a union nothing is shared
            np.minimum(end, last, out=shared)
            shared -= np.maximum(start, first, out=hull)
            np.maximum(end, last, out=hull)
            hull -= np.minimum(start, first)
            iou = np.divide(shared, hull, out=shared)
            near = np.flatnonzero(iou > least.take(at)[:, None])
            flat[near] *= np.exp(-(flat_iou[near] ** 2) / settings.epsilon)
    counts = [min(len(video.order), keep) for video in videos]
    return [(kept[row, :count], scores[row, :count]) for row, count in enumerate(counts)]


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
