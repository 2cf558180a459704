"""Frames and flow planes as the square images a network sees."""

from typing import Any

import cv2
import numpy as np

from actionspan.arrays import UInt8


def fit_square(image: UInt8, size: int, crop: str) -> UInt8:
    """Resize an image, (h, w) or (h, w, 3), to a square of `size` pixels a side.

    With crop `"squash"` the aspect of the image changes; with `"centre"` its centre is cut out.
    """
    height, width = image.shape[:2]
    if crop == "centre":
        short = min(height, width)
        top, left = (height - short) // 2, (width - short) // 2
        image = image[top : top + short, left : left + short]
    if image.shape[:2] == (size, size):
        return image
    method = cv2.INTER_AREA if min(image.shape[:2]) > size else cv2.INTER_LINEAR
    resized: Any = cv2.resize(np.ascontiguousarray(image), (size, size), interpolation=method)
    return np.asarray(resized, np.uint8)


def frames_to_batch(frames: UInt8, size: int, crop: str) -> UInt8:
    """Turn (B, H, W, 3) frames into a (B, size, size, 3) batch."""
    return np.stack([fit_square(frame, size, crop) for frame in frames])


def planes_to_batch(planes: UInt8, size: int, crop: str) -> UInt8:
    """Turn (B, 2L, h, w) flow planes into a (B, size, size, 2L) batch.

    Flow vectors keep their length: only their grid changes.
    """
    batch = np.empty((len(planes), size, size, planes.shape[1]), np.uint8)
    for snippet, stack in zip(batch, planes, strict=True):
        for channel, plane in enumerate(stack):
            snippet[:, :, channel] = fit_square(plane, size, crop)
    return batch
