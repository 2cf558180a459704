"""Windows over sequences longer than a network sees: their places, cutting and merging them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from actionspan.arrays import Int64

Array = NDArray[Any]


def window_starts(steps: int, window: int, stride: int, rest: int) -> Int64:
    """Return the first step of each window over a sequence.

    Windows start at 0, `stride`, 2 `stride`, … as long as they fit. If more than `rest` steps
    remain behind the last window, another ends with the sequence (BSN on THUMOS14: windows of 100,
    stride 50, rest 20). A sequence shorter than a window has a window that passes its end.

    Args:
        steps: Length of the sequence, at least 1.
        window: Length of a window.
        stride: Distance of two windows, from 1 to `window`.
        rest: How many steps at the end may be in no window.
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

    Steps that no window covers are 0; what a window holds beyond the sequence is dropped.
    """
    total = np.zeros((steps, *parts.shape[2:]), np.float64)
    count = np.zeros((steps, *[1] * (parts.ndim - 2)))
    for part, start in zip(parts, starts.tolist(), strict=True):
        inside = slice(start, min(start + parts.shape[1], steps))
        total[inside] += part[: inside.stop - start]
        count[inside] += 1
    merged: Array = (total / np.maximum(count, 1)).astype(parts.dtype)
    return merged
