"""What the classifier of segments sees: means of features before, inside and after."""

import numpy as np
from numpy.typing import ArrayLike

from actionspan.arrays import Float32, Float64

BLOCKS = 4  # before, first half, second half, after
_NOTHING = 1e-6  # steps: a region that is shorter has no features


def segment_features(sequence: Float32, segments: ArrayLike, duration_seconds: float) -> Float64:
    """Describe segments of a video by its features there.

    A step that lies partly in a region counts by that part. Before and after are as long as half
    the segment, but end with the video; where nothing is left of a region its mean is 0, that of
    centred features. A segment shorter than a step is taken as long as one.

    Args:
        sequence: (T, C) features of T equal steps that cover the video.
        segments: (M, 2) starts and ends in seconds, start ≤ end.
        duration_seconds: The video's length.

    Returns:
        (M, 4 C + 1): the means before, in the first half, in the second half and after; and the
        logarithm of the length in seconds.
    """
    steps = len(sequence)
    within = np.asarray(segments, np.float64).reshape(-1, 2) / duration_seconds * steps
    centre = within.mean(axis=1)
    half = np.maximum(within[:, 1] - within[:, 0], 1.0) / 2
    # the edges of the regions, and the integral of the features up to each
    edges = centre[:, None] + half[:, None] * np.arange(-2, 3)  # (M, 5)
    edges = np.clip(edges, 0, steps)
    integral = np.zeros((steps + 1, sequence.shape[1]))
    np.cumsum(sequence, axis=0, dtype=np.float64, out=integral[1:])
    before = np.minimum(edges.astype(np.intp), steps - 1)
    share = (edges - before)[..., None]
    reached = integral[before] * (1 - share) + integral[before + 1] * share  # (M, 5, C)
    widths = np.diff(edges, axis=1)[..., None]
    # a difference of the integral over next to nothing would be rounding alone
    inside = widths > _NOTHING
    means = np.diff(reached, axis=1) * inside / np.where(inside, widths, 1)  # (M, 4, C)
    seconds = 2 * half / steps * duration_seconds
    return np.concatenate(
        [means.reshape(len(within), BLOCKS * sequence.shape[1]), np.log(seconds)[:, None]], axis=1
    )


def neighbours(segments: ArrayLike, duration_seconds: float, shift: float) -> Float64:
    """Return (9, M, 2) segments: as they are, then with one or both ends earlier or later.

    An end moves by `shift` (0 to below 0.5) of the segment's length, so that the tIoU with the
    segment is 1 − 2 · shift or more. Ends stay inside the video.
    """
    exact = np.asarray(segments, np.float64).reshape(-1, 2)
    moves = (0.0, -shift, shift)
    factors = np.array([[[first, last]] for first in moves for last in moves])  # (9, 1, 2)
    moved: Float64 = exact + factors * (exact[:, 1:] - exact[:, :1])
    return np.clip(moved, 0, duration_seconds)
