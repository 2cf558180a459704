"""Features of any number of snippets to a fixed number of steps over the video."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from actionspan.arrays import Float32, Float64, Int64

_GAP = 3.0  # times the distance of the neighbouring snippets
_TOGETHER = 128  # features that are rescaled at once, so that a long video needs little memory


def rescale(
    features: Float32,
    times: Float64,
    duration: float,
    steps: int,
    method: str,
    *,
    motion: bool = False,
) -> Float32:
    """Rescale a sequence to `steps` bins of equal length over the video.

    Features are interpolated linearly between snippet centres, and constant before the first and
    after the last. Where a video of variable frame rate shows a frame for long, its snippets lie
    far apart; features are held there. With `"mean"` a bin is the mean over its length; with
    `"bins"` the mean of three points, its start, middle and end (as in BSN's reference); with
    `"linear"` the point at its middle; with `"nearest"` the snippet nearest to the middle. A
    sequence that already has a row at the middle of each bin is returned as it is.

    Args:
        features: (T, C) or (T,), a row for each snippet.
        times: (T,) increasing snippet centres in seconds.
        duration: Length of the video in seconds.
        steps: How many bins: the result is (steps, C) or (steps,).
        method: One of these names.
        motion: The features measure motion: a frame that is held is at rest, 0.

    Raises:
        ValueError: Shapes disagree, snippets are missing, or times do not increase.
    """
    # checks
    features = np.asarray(features, np.float32)
    if len(features) != len(times) or len(times) == 0:
        raise ValueError(f"{len(features)} rows of features and {len(times)} times: not 1 or more")
    if not np.all(np.diff(times) > 0):
        raise ValueError("times do not increase")
    if not duration > 0:
        raise ValueError(f"duration is {duration}: above 0 seconds")
    if method not in ("mean", "bins", "linear", "nearest"):
        raise ValueError(f"method is {method!r}: mean, bins, linear or nearest")
    # edges and middles of the bins by turns
    halves = np.arange(2 * steps + 1, dtype=np.float64) * (duration / (2 * steps))
    middles = halves[1::2]
    if len(times) == steps and np.allclose(times, middles, rtol=0, atol=1e-6 * duration):
        return features.copy()
    features, times = _hold(features, times, motion)
    if method == "nearest":
        between = (times[1:] + times[:-1]) / 2
        return features[np.searchsorted(between, middles)]
    if method == "linear":
        return interpolate(features, times, middles)
    if method == "mean":
        if features.ndim == 1:
            return _means(features, times, halves[::2])
        blocks = np.array_split(features, -(-features.shape[1] // _TOGETHER) or 1, axis=1)
        return np.concatenate([_means(block, times, halves[::2]) for block in blocks], axis=1)
    points = interpolate(features, times, halves)
    return (points[:-1:2] + points[1::2] + points[2::2]) / np.float32(3)


def _hold(features: Float32, times: Float64, motion: bool) -> tuple[Float32, Float64]:
    """Add a row at both ends of each gap, so that the interpolation in between is constant.

    A gap is several times as long as the distances before and behind it; half of the larger still
    belongs to the snippet at each of its ends. Snippets of a part that is slow altogether are not
    gaps.
    """
    distances = np.diff(times)
    if len(distances) < 2:
        return features, times
    beside = np.maximum(np.append(0.0, distances[:-1]), np.append(distances[1:], 0.0))
    (gaps,) = np.nonzero(distances > _GAP * beside)
    if not len(gaps):
        return features, times
    ends = np.stack([times[gaps], times[gaps + 1]]) + np.array([[0.5], [-0.5]]) * beside[gaps]
    held = np.zeros_like(features[gaps]) if motion else features[gaps]
    places = np.repeat(gaps + 1, 2)
    return (
        np.insert(features, places, np.repeat(held, 2, axis=0), axis=0),
        np.insert(times, places, ends.T.reshape(-1)),
    )


def _means(features: Float32, times: Float64, edges: Float64) -> Float32:
    """Return the mean of linearly interpolated features between neighbouring edges."""
    inside = times[(times > edges[0]) & (times < edges[-1])]
    points = np.unique(np.concatenate([edges, inside]))
    values = interpolate(features, times, points)
    lengths = np.diff(points).astype(np.float32).reshape(-1, *[1] * (features.ndim - 1))
    areas = (values[1:] + values[:-1]) / 2 * lengths
    firsts = np.searchsorted(points, edges[:-1])
    sums, widths = (np.add.reduceat(parts, firsts, axis=0) for parts in (areas, lengths))
    return np.asarray(sums / widths, np.float32)


def interpolate(features: Float32, times: Float64, points: Float64) -> Float32:
    """Interpolate (T, C) features of (T,) times linearly at points in time, clamped at the ends."""
    if len(times) == 1:
        return np.repeat(features, len(points), axis=0)
    after = np.clip(np.searchsorted(times, points), 1, len(times) - 1)
    before = after - 1
    weight = (points - times[before]) / (times[after] - times[before])
    share: Float32 = np.clip(weight, 0, 1).astype(np.float32)
    share = share.reshape(-1, *[1] * (features.ndim - 1))
    return features[before] * (1 - share) + features[after] * share


Array = NDArray[Any]


def window_starts(steps: int, window: int, stride: int, rest: int) -> Int64:
    """Return the first step of each window over a sequence.

    Windows start at 0, `stride`, 2 `stride`, … (`stride` being 1 to `window`) as long as they fit.
    If more than `rest` steps remain behind the last window, another ends with the sequence (BSN on
    THUMOS14: windows of 100, stride 50, rest 20). A sequence shorter than a window has a window
    that passes its end.
    """
    if steps <= window:
        return np.zeros(1, np.int64)
    starts = np.arange(0, steps - window + 1, stride, dtype=np.int64)
    if steps - (starts[-1] + window) > rest:
        starts = np.append(starts, steps - window)
    return starts


def cut_windows(sequence: Array, starts: Int64, window: int) -> Array:
    """Return (N, window, …) parts of a (T, …) sequence, zero beyond its end."""
    parts = np.zeros((len(starts), window, *sequence.shape[1:]), sequence.dtype)
    for part, start in zip(parts, starts.tolist(), strict=True):
        inside = sequence[start : start + window]
        part[: len(inside)] = inside
    return parts


def merge_windows(parts: Array, starts: Int64, steps: int) -> Array:
    """Return the (steps, …) sequence of (N, window, …) parts, their mean where they overlap.

    Steps that no window covers are 0; rows of a window beyond the sequence are dropped.
    """
    total = np.zeros((steps, *parts.shape[2:]), np.float64)
    count = np.zeros((steps, *[1] * (parts.ndim - 2)))
    for part, start in zip(parts, starts.tolist(), strict=True):
        inside = slice(start, min(start + parts.shape[1], steps))
        total[inside] += part[: inside.stop - start]
        count[inside] += 1
    merged: Array = (total / np.maximum(count, 1)).astype(parts.dtype)
    return merged
