"""The square around the movement, cut from frames that are larger than the snippets'.

Someone far from a camera is a few pixels of the image that an encoder sees. A square that follows
them shows them larger, wherever they are.

Movement is a difference of two consecutive images above the noise. Differences over the
`_REACH` images on both sides count too, less with their distance, so that the square moves
smoothly and is there before the motion is. Its centre is the mean place of the differences squared,
its side their spread. Where nothing moves it stays; until then it is the centre of the image.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain, repeat

import cv2
import numpy as np

from actionspan.arrays import Float32, UInt8, median

_MAP = 64  # short side of the maps of differences, in points
_REACH = 4  # images before and behind
_FADING = 0.7  # of a difference an image further away
_NOISE = 6.0  # levels: a lesser difference, beyond 3 times the median, is not motion
_LEAST = 20.0  # sum of squared differences below which nothing moves
_SPREAD = 3.2  # side of the square in deviations of the differences' places
SMALLEST_SHARE = 3 / 8
"""Side of the smallest square, as a share of the image's short side."""


def squares(pictures: Iterable[UInt8], side: int) -> Iterator[UInt8]:
    """Yield the square of each image, when `_REACH` more have come or none is left.

    `pictures` are (H, W, 3) in RGB, all of one size, a fixed time apart; squares are
    (side, side, 3).
    """
    weights = _FADING ** np.abs(np.arange(-_REACH, _REACH + 1, dtype=np.float32))
    maps: deque[Float32] = deque(maxlen=len(weights))
    waiting: deque[UInt8] = deque()
    before: Float32 | None = None
    place = (0.5, 0.5, 1.0)
    for picture in chain(pictures, repeat(None, _REACH)):  # None: beyond the end
        if picture is not None:
            waiting.append(picture)
            small = _shrunk(picture)
            maps.append(_motion(small if before is None else before, small))
            before = small
        elif maps:
            maps.append(np.zeros_like(maps[-1]))
        if len(maps) > _REACH:
            near = np.tensordot(weights[-len(maps) :], np.stack(maps), axes=1).astype(np.float32)
            place = _place(near, place)
            yield _cut(waiting.popleft(), place, side)


def _shrunk(picture: UInt8) -> Float32:
    height, width = picture.shape[:2]
    scale = _MAP / min(height, width)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    gray = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)
    return np.asarray(cv2.resize(gray, size, interpolation=cv2.INTER_AREA), np.float32)


def _motion(first: Float32, second: Float32) -> Float32:
    """Return the squared difference of two maps where it is more than noise and light."""
    difference = np.abs(second - first)
    motion: Float32 = np.maximum(difference - 3 * median(difference) - _NOISE, 0)
    return motion**2


def _place(motion: Float32, before: tuple[float, float, float]) -> tuple[float, float, float]:
    """Return the square's centre, in shares of width and height, and its side, of the short one."""
    total = float(motion.sum())
    if total <= _LEAST:
        return before
    centres, deviation = [], 0.0
    for axis in (0, 1):
        share = motion.sum(axis=axis) / total
        points = np.arange(len(share)) + 0.5
        centre = float(share @ points)
        deviation = max(deviation, float(np.sqrt(share @ np.square(points - centre))))
        centres.append(centre / len(share))
    side = float(np.clip(_SPREAD * deviation / min(motion.shape), SMALLEST_SHARE, 1))
    return centres[0], centres[1], side


def _cut(picture: UInt8, place: tuple[float, float, float], side: int) -> UInt8:
    """Cut a square out, moved to be within the image, and resize it to `side` pixels."""
    height, width = picture.shape[:2]
    pixels = max(1, round(place[2] * min(height, width)))
    left = min(max(round(place[0] * width - pixels / 2), 0), width - pixels)
    top = min(max(round(place[1] * height - pixels / 2), 0), height - pixels)
    square = picture[top : top + pixels, left : left + pixels]
    method = cv2.INTER_AREA if pixels > side else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(square, (side, side), interpolation=method), np.uint8)
