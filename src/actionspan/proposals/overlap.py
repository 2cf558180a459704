"""Temporal intersection over union (tIoU) of segments."""

import numpy as np
from numpy.typing import ArrayLike

from actionspan.arrays import Float64


def temporal_iou(first: ArrayLike, second: ArrayLike) -> Float64:
    """Return the tIoU (N, M) of segments (N, 2) with segments (M, 2), start ≤ end, in any unit.

    It is 0 where both segments have no length.
    """
    rows = np.asarray(first, np.float64).reshape(-1, 1, 2)
    columns = np.asarray(second, np.float64).reshape(1, -1, 2)
    return overlap(rows[..., 0], rows[..., 1], columns[..., 0], columns[..., 1])


def overlap(
    start: ArrayLike, end: ArrayLike, other_start: ArrayLike, other_end: ArrayLike
) -> Float64:
    """Return the tIoU of segments given by their starts and ends, which broadcast."""
    shared = np.asarray(np.minimum(end, other_end)) - np.maximum(start, other_start)
    # Where two segments overlap their union is their hull; a sum of lengths would let rounding
    # push the tIoU of equal segments off 1.
    hull = np.asarray(np.maximum(end, other_end)) - np.minimum(start, other_start)
    iou: Float64 = np.maximum(shared, 0.0) / np.maximum(hull, np.finfo(float).smallest_subnormal)
    return iou
