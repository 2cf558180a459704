"""Snippets in which nothing changes: they look as one before them does, but for noise and light.

Images are compared by the means of blocks, of which a movement changes a few much and noise each
a little: a mean over the image would hide someone who is far away. The limit of a block's
change follows the noise of the video: the change of all but a hundredth of the blocks from one
snippet to the next (in coded images most blocks may not change at all, and a few do), where it
changes little: the quieter quarter of the last snippets counts, and a camera that moves is not
taken for noise beyond a bound. Slow light and flicker change all blocks alike and are allowed
within bounds.

A snippet is still if its frames do not differ, nor did the frames of the last that was not still,
and its images do not differ from that one's. So changes that are too slow to be seen from one
snippet to the next add up until they are.
"""

from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import cv2
import numpy as np

from actionspan.arrays import Float32, Int64, Mask, UInt8, median

_BLOCK = 8  # pixels a side
_TIMES = 3.0  # the noise, that a block may change by
_NOISE = 0.99  # quantile of what blocks change by
_LEAST, _MOST = 2.0, 6.0  # levels of 255, between which the bar lies
_LIGHT = 2.0  # levels that all blocks may change by
_REMEMBERED = 64  # snippets
_QUIETER = 0.25


STILL = "still"
"""The name of which snippets are still, in files and among a video's facts."""


class StillFinder:
    """Classifies the snippets of a video as still or not, one after the other."""

    def __init__(self) -> None:
        self._noise: deque[float] = deque(maxlen=_REMEMBERED)
        self._before: Float32 | None = None  # the centre frame of the last snippet
        self._reference: list[Float32] = []  # the images of the last that was not still
        self._calm = False  # whether its frames did not differ

    def __call__(self, pictures: Sequence[UInt8], gray: UInt8) -> bool:
        """Return whether the next snippet is still.

        Args:
            pictures: Its images, the centre frame (H, W, 3) first.
            gray: (L + 1, H, W) its consecutive frames.
        """
        views = [_means(picture) for picture in pictures]
        if self._before is not None:
            difference = views[0] - self._before
            away = np.abs(difference - median(difference))
            self._noise.append(float(np.quantile(away, _NOISE)))
        self._before = views[0]
        noise = float(np.quantile(self._noise, _QUIETER)) if self._noise else 0.0
        bar = min(max(_TIMES * noise, _LEAST), _MOST)
        calm = all(_same(*pair, bar) for pair in pairwise(map(_means, gray)))
        if calm and self._calm and all(map(_same, self._reference, views, [bar] * len(views))):
            return True
        self._reference, self._calm = views, calm
        return False


def _means(picture: UInt8) -> Float32:
    """Return the means of an image's blocks."""
    height, width = picture.shape[:2]
    size = max(1, width // _BLOCK), max(1, height // _BLOCK)
    # not of bytes: their means would be rounded to whole levels, coarser than noise
    means: Any = cv2.resize(picture.astype(np.float32), size, interpolation=cv2.INTER_AREA)
    return np.asarray(means, np.float32)


def _same(first: Float32, second: Float32, bar: float) -> bool:
    """Return whether no block changes by more than light and noise."""
    difference = second - first
    light = median(difference)
    return bool(abs(light) <= _LIGHT and np.abs(difference - light).max() <= bar)


def own_rows(still: Mask) -> Int64:
    """Return (B,) for each snippet the number, among those not still, of the last up to it.

    It is −1 for still ones before all others.
    """
    return np.cumsum(~still) - 1
