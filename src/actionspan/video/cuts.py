"""Where a video is cut: a frame that differs from the one before it more than its neighbours do."""

import math
from array import array
from collections import deque
from collections.abc import Iterable, Iterator

import cv2
import numpy as np

from actionspan.arrays import Float32, Float64, UInt8
from actionspan.video.bouts import BoutFinder
from actionspan.video.decode import Frame
from actionspan.video.zones import Zones

_SIZE = 80, 60  # pixels that frames are reduced to
_ENOUGH = 320, 240  # pixels that they are reduced from
_LEVELS = 8  # of each colour, in histograms
_AROUND = 12  # frames on each side that a cut is held against
_TIMES = 3.0  # their mean difference that a cut's is, at least
_LEAST = 0.02  # the least difference of a cut, 0 … 1


class CutFinder:
    """Compares each frame, reduced, with the one before it, as frames pass.

    Frames of `zones` are compared whole; what moves is looked for in the zones.

    Attributes:
        bouts: When something moves, found in the same small frames.
    """

    def __init__(self, zones: Zones = ()) -> None:
        self._rows = array("d")  # seconds, difference and change of colours, frame by frame
        self._last: deque[float] = deque(maxlen=_AROUND)  # differences
        self._before: tuple[Frame, UInt8] | None = None
        self.bouts = BoutFinder(zones)

    def watch(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        """Yield frames unchanged; most are compared by luma alone."""
        for frame in frames:
            whole = frame.whole or frame
            grey = _small_grey(whole)
            self._rows.extend((frame.seconds, *self._changes(whole, grey)))
            seen = (grey,) if whole is frame else (_small_grey(frame), grey)
            self.bouts.watch(frame.seconds, *seen)
            yield frame

    def _changes(self, frame: Frame, grey: UInt8) -> tuple[float, float]:
        """Return by how much grey values and colours differ from the frame before, 0 … 1.

        Colours are compared only where a cut is possible, whatever follows.
        """
        before, self._before = self._before, (frame, grey)
        if before is None:
            return 0.0, 0.0
        difference = cv2.norm(grey, before[1], cv2.NORM_L1) / (255 * grey.size)
        least = max(_TIMES * sum(self._last) / (2 * _AROUND + 1), _LEAST)
        self._last.append(difference)
        if difference < least:
            return difference, 0.0
        return difference, cv2.norm(_histogram(frame), _histogram(before[0]), cv2.NORM_L1) / 2

    def found(self) -> Float64:
        """Return (K, 2) when the video is cut, in seconds, and how much the colours change, 0 … 1.

        The latter is the distance of the histograms on both sides.
        """
        from scipy.ndimage import maximum_filter1d, uniform_filter1d  # no frame waits for it

        seconds, difference, colours = np.array(self._rows).reshape(-1, 3).T
        width = 2 * _AROUND + 1
        sums = uniform_filter1d(difference, width, mode="nearest") * width
        others = (sums - difference) / (width - 1)
        highest = maximum_filter1d(difference, 2 * (_AROUND // 3) + 1, mode="nearest")
        is_cut = (difference == highest) & (difference >= np.maximum(_TIMES * others, _LEAST))
        return np.stack([seconds[is_cut], colours[is_cut]], axis=1)


def _small_grey(frame: Frame) -> UInt8:
    luma = frame.luma()
    if luma is None:
        return np.asarray(cv2.cvtColor(_small(frame.picture()), cv2.COLOR_RGB2GRAY), np.uint8)
    return np.asarray(cv2.LUT(_small(luma[0]), luma[1]), np.uint8)


def _histogram(frame: Frame) -> Float32:
    counts = cv2.calcHist([_small(frame.picture())], [0, 1, 2], None, [_LEVELS] * 3, [0, 256] * 3)
    return np.asarray(counts / math.prod(_SIZE), np.float32)


def _small(picture: UInt8) -> UInt8:
    # only some pixels of a large frame: the mean of all takes longer than decoding
    step = max(1, min(picture.shape[0] // _ENOUGH[1], picture.shape[1] // _ENOUGH[0]))
    small = cv2.resize(picture[::step, ::step], _SIZE, interpolation=cv2.INTER_AREA)
    return np.asarray(small, np.uint8)
