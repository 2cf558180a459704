"""The size at which pictures are kept."""

import cv2
import numpy as np

from actionspan.arrays import UInt8


def fitted_size(height: int, width: int, short_side: int) -> tuple[int, int]:
    """Return the height and width a frame is reduced to: never enlarged, its aspect kept, even."""
    scale = short_side / min(height, width)
    if scale >= 1:
        return height, width
    return 2 * max(1, round(height * scale / 2)), 2 * max(1, round(width * scale / 2))


def resized(picture: UInt8, size: tuple[int, int]) -> UInt8:
    """Return an (H, W, 3) picture at a height and width."""
    if picture.shape[:2] == size:
        return picture
    return np.asarray(cv2.resize(picture, size[::-1], interpolation=cv2.INTER_AREA), np.uint8)
