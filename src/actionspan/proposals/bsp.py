"""Boundary-sensitive features of candidates (BSP of BSN): 32 samples of actionness.

Where the samples lie, for a segment [s, e] of length len = e − s:

| values | region [a, b] | n |
|---|---|---|
| 0…15 | centre [s, e] | 16 |
| 16…23 | start [s − len/5, s + len/5] | 8 |
| 24…31 | end [e − len/5, e + len/5] | 8 |

A region's n grid points are a + k·h, k = 0…n−1, with h = (b − a)/(n − 1): the first and the last
lie on its ends. Value k is the mean of actionness at four finer points round grid point k, at
−h/2, −h/6, +h/6 and +h/2. Actionness is linear between bin centres; outside the video it continues
with bins of zero, so that it falls linearly to zero over the bin beyond each end.
"""

import numpy as np
from numpy.typing import ArrayLike

from actionspan.arrays import Float32, Float64

_CENTRE = 16  # samples
_BOUNDARY = 8
_REACH = 0.2  # of the segment's length, to each side of a boundary
_FINER = np.array([-1 / 2, -1 / 6, 1 / 6, 1 / 2])  # of the grid step
FEATURES = _CENTRE + 2 * _BOUNDARY


def _places() -> Float64:
    """Return where the finer samples lie, as a multiple of the length after the start: (4, 32)."""
    regions = (
        (0.0, 1.0, _CENTRE),
        (-_REACH, _REACH, _BOUNDARY),
        (1 - _REACH, 1 + _REACH, _BOUNDARY),
    )
    places = []
    for low, high, samples in regions:
        step = (high - low) / (samples - 1)
        places.append(low + step * (np.arange(samples) + _FINER[:, None]))  # (4, samples)
    return np.concatenate(places, axis=1)


PLACES = _places()


def bsp_features(actionness: ArrayLike, segments: ArrayLike) -> Float32:
    """Sample actionness in and round each segment.

    Args:
        actionness: (T,) actionness of the bins of one video.
        segments: (M, 2) starts and ends in 0…1 of the video.

    Returns:
        (M, 32): 16 of the centre, 8 of the start region, 8 of the end region.
    """
    bins = np.asarray(actionness, np.float64)
    padded = np.concatenate([[0.0], bins, [0.0, 0.0]])  # the last for the point on the right end
    rise = np.diff(padded)
    within = np.asarray(segments, np.float64).reshape(-1, 2) * len(bins) + 0.5  # in padded bins
    start = within[:, :1]
    length = within[:, 1:] - start
    total = np.zeros((len(within), FEATURES))
    for places in PLACES:
        # interpolate between the bins before and after, in place
        position = start + length * places  # (M, 32)
        np.clip(position, 0, len(bins) + 1, out=position)
        before = position.astype(np.intp)
        position -= before
        position *= rise.take(before)
        position += padded.take(before)
        total += position
    return (total / len(PLACES)).astype(np.float32)
