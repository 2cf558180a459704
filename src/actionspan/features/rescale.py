"""Features of any number of snippets to a fixed number of steps over the video."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]


def rescale(features: Floats, times: Doubles, duration: float, steps: int, method: str) -> Floats:
    """Rescale a sequence to `steps` bins of equal length over the video.

    Between snippet centres features are interpolated linearly; before the first and after the
    last they stay as there. With `"bins"` each bin is the mean of three points, its start, middle
    and end (as in BSN's reference); with `"linear"` it is the point at its middle. A sequence
    that already has one row at the middle of each bin comes back as it is.

    Args:
        features: (T, C) or (T,), one row a snippet.
        times: (T,) increasing snippet centres in seconds.
        duration: Length of the video in seconds.
        steps: How many bins.
        method: `"bins"` or `"linear"`.

    Returns:
        (steps, C) or (steps,).

    Raises:
        ValueError: Shapes disagree, there is no snippet, or times do not increase.
    """
    features = np.asarray(features, np.float32)
    if len(features) != len(times) or len(times) == 0:
        raise ValueError(f"{len(features)} rows of features and {len(times)} times: not 1 or more")
    if not np.all(np.diff(times) > 0):
        raise ValueError("times do not increase")
    if not duration > 0:
        raise ValueError(f"duration is {duration}: above 0 seconds")
    if method not in ("bins", "linear"):
        raise ValueError(f"method is {method!r}: bins or linear")
    halves = np.arange(2 * steps + 1, dtype=np.float64) * (
        duration / (2 * steps)
    )  # edges and middles by turns
    middles = halves[1::2]
    if len(times) == steps and np.allclose(times, middles, rtol=0, atol=1e-6 * duration):
        return features.copy()
    if method == "linear":
        return _interpolate(features, times, middles)
    points = _interpolate(features, times, halves)
    return (points[:-1:2] + points[1::2] + points[2::2]) / np.float32(3)


def _interpolate(features: Floats, times: Doubles, points: Doubles) -> Floats:
    """Interpolate (T, C) features linearly at some points in time, clamped at the ends."""
    if len(times) == 1:
        return np.repeat(features, len(points), axis=0)
    after = np.clip(np.searchsorted(times, points), 1, len(times) - 1)
    before = after - 1
    weight = (points - times[before]) / (times[after] - times[before])
    share: Floats = np.clip(weight, 0, 1).astype(np.float32)
    share = share.reshape(-1, *[1] * (features.ndim - 1))
    return features[before] * (1 - share) + features[after] * share
