"""What the density of instances sees of a segment: the boundary curves in and round it.

| values | what |
|---|---|
| 12 | actionness along the segment |
| 27 + 27 | start, actionness, end at 9 places across its start and across its end |
| 15 + 15 | the same at 5 places one step apart, whatever its length |
| 12 | their means inside, in the half length before and behind, and in the middle half |
| 3 | logarithm of the length in seconds, as share of the video, and in steps |

There is nothing in it that depends on where in the video the segment lies. Where proposals are made
while the video goes on, a segment is looked at soon after its end: nothing is seen farther than
some steps behind it, where the curves go on as they were, and the share of the video is 0.
"""

import numpy as np
from numpy.typing import ArrayLike

from actionspan.arrays import Float32, Float64

_CURVES = 3  # start, actionness, end
_ALONG = np.linspace(0.03, 0.97, 12)  # of the length
_ACROSS = np.linspace(-0.4, 0.4, 9)  # of the length, or of `_REACH` steps if that is more
_REACH = 2.5
_STEPWISE = np.array([-1.5, -0.5, 0.0, 0.5, 1.5])
_LEAST = 0.25  # steps that a mean is taken over
FEATURES = len(_ALONG) + 2 * _CURVES * (len(_ACROSS) + len(_STEPWISE)) + 4 * _CURVES + 3


def cell_features(
    probabilities: ArrayLike, cells: Float64, seconds: float, ahead: float | None = None
) -> Float32:
    """Return the features (N, 111) of segments.

    Args:
        probabilities: (T, 3) start, actionness and end of a video; beyond its ends they are 0.
        cells: (N, 2) starts and ends in steps.
        seconds: Length of a step.
        ahead: Steps behind its end that are seen of the curves; None: as far as they go.
    """
    curves = np.asarray(probabilities, np.float64).T  # (3, T)
    steps = curves.shape[1]
    start, end = cells[:, :1], cells[:, 1:]  # (N, 1)
    length = end - start
    last = np.full_like(end, np.inf) if ahead is None else end + ahead  # (N, 1)
    across = np.maximum(length, _REACH) * _ACROSS  # (N, 9)
    sampled = [
        _sample(curves[1:2], start + length * _ALONG),
        *(
            _sample(curves, np.minimum(edge + places, last))
            for places in (across, _STEPWISE)
            for edge in (start, end)
        ),
    ]
    half, quarter = length / 2, length / 4
    sums = np.concatenate([np.zeros((_CURVES, 1)), np.cumsum(curves, axis=1)], axis=1)
    regions = [(start, end), (start - half, start), (end, np.minimum(end + half, last))]
    means = [_means(sums, *region) for region in [*regions, (start + quarter, end - quarter)]]
    share = length / steps if ahead is None else np.ones_like(length)
    sizes = np.log(np.concatenate([length * seconds, share, length], axis=1))
    return np.concatenate([*sampled, *means, sizes], axis=1).astype(np.float32)


def _sample(curves: Float64, places: Float64) -> Float64:
    """Return (N, K·P) values of K curves at places (N, P), linear between the steps' middles."""
    steps = curves.shape[1]
    padded = np.pad(curves, ((0, 0), (1, 2)))
    position = np.clip(places + 0.5, 0, steps + 1)
    before = position.astype(np.intp)
    share = position - before
    values = padded[:, before] * (1 - share) + padded[:, before + 1] * share  # (K, N, P)
    flat: Float64 = values.transpose(1, 0, 2).reshape(len(places), -1)
    return flat


def _means(sums: Float64, first: Float64, last: Float64) -> Float64:
    """Return (N, K) means of K curves from `first` to `last` (N, 1), cut to the video."""
    edges = np.arange(sums.shape[1])
    first, last = (np.clip(ends[:, 0], 0, edges[-1]) for ends in (first, last))
    areas = [np.interp(last, edges, row) - np.interp(first, edges, row) for row in sums]
    means: Float64 = np.stack(areas, axis=1) / np.maximum(last - first, _LEAST)[:, None]
    return means
