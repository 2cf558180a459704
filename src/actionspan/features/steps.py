"""Features of any number of snippets to a fixed number of steps over the video."""

import numpy as np

from actionspan.arrays import Float32, Float64

_GAP = 3.0  # times the distance of the snippets beside it
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
    after the last. Where a video of variable frame rate shows a picture for long, its snippets lie
    far apart; features are held there. With `"mean"` a bin is the mean over its length; with
    `"bins"` the mean of three points, its start, middle and end (as in BSN's reference); with
    `"linear"` the point at its middle; with `"nearest"` the snippet nearest to the middle. A
    sequence that already has a row at the middle of each bin is returned as it is.

    Args:
        features: (T, C) or (T,), a row for each snippet.
        times: (T,) increasing snippet centres in seconds.
        duration: Length of the video in seconds.
        steps: How many bins.
        method: `"mean"`, `"bins"`, `"linear"` or `"nearest"`.
        motion: The features measure motion: a picture that is held is at rest, 0.

    Returns:
        (steps, C) or (steps,).

    Raises:
        ValueError: Shapes disagree, there is no snippet, or times do not increase.
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
    """Add a row at both ends of each gap, so that what is interpolated in between is constant.

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
