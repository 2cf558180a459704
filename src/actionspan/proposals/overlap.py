"""Temporal intersection over union (tIoU) of segments."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def temporal_iou(first: ArrayLike, second: ArrayLike) -> Array:
    """Return the tIoU of every segment of `first` with every segment of `second`.

    Args:
        first: (N, 2) starts and ends, start ≤ end, in any unit.
        second: (M, 2) starts and ends in the same unit.

    Returns:
        (N, M) values in 0…1; 0 where both segments have no length.
    """
    one = np.asarray(first, np.float64).reshape(-1, 1, 2)
    two = np.asarray(second, np.float64).reshape(1, -1, 2)
    return overlap(one[..., 0], one[..., 1], two[..., 0], two[..., 1])


def overlap(
    start: ArrayLike, end: ArrayLike, other_start: ArrayLike, other_end: ArrayLike
) -> Array:
    """Return the tIoU of segments given by their starts and ends, which broadcast."""
    shared = np.asarray(np.minimum(end, other_end)) - np.maximum(start, other_start)
    shared = np.maximum(shared, 0.0)
    # Where two segments overlap their union is their hull; a sum of lengths would let rounding
    # push the tIoU of equal segments off 1.
    hull = np.asarray(np.maximum(end, other_end)) - np.minimum(start, other_start)
    iou: Array = shared / np.maximum(hull, np.finfo(np.float64).smallest_subnormal)
    return iou
