"""What of a stored picture a network sees: a part of it as a square, mirrored or not."""

from typing import Any, Literal

import cv2
import numpy as np

from actionspan.arrays import UInt8

_DIRECT = 4  # channels that OpenCV resizes at once, with the same bits as one by one


def square(picture: UInt8, rows: slice, columns: slice, size: int) -> UInt8:
    """Return a part of an (H, W, C) picture, resized to (size, size, C)."""
    part = picture[rows, columns]
    if part.shape[:2] == (size, size):
        return np.ascontiguousarray(part)
    method = cv2.INTER_AREA if min(part.shape[:2]) > size else cv2.INTER_LINEAR
    resized: Any
    if part.shape[2] <= _DIRECT and part.strides[2] == 1:
        resized = cv2.resize(part, (size, size), interpolation=method).reshape(size, size, -1)
    else:  # plane by plane: where planes follow each other in memory this copies none
        planes = [
            cv2.resize(part[:, :, channel], (size, size), interpolation=method)
            for channel in range(part.shape[2])
        ]
        resized = cv2.merge(planes).reshape(size, size, -1)
    return np.asarray(resized, np.uint8)


def flipped(picture: UInt8, stream: Literal["rgb", "flow"]) -> UInt8:
    """Return an (H, W, C) picture mirrored from left to right.

    The horizontal planes of flow, the even ones, change their sign: code c becomes 256 − c.
    """
    mirrored = np.ascontiguousarray(picture[:, ::-1])
    if stream == "flow":  # bytes wrap: −c is 256 − c for c from 1 to 255
        mirrored[:, :, ::2] = np.negative(mirrored[:, :, ::2])
    return mirrored
