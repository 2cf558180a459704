"""Where a video is cut: a frame that differs from the one before it more than its neighbours do."""

from array import array
from collections.abc import Callable, Iterable, Iterator

import cv2
import numpy as np

from actionspan.arrays import Float64, UInt8
from actionspan.video.bouts import BoutFinder
from actionspan.video.decode import Frame

_SIZE = 80, 60  # pixels that frames are reduced to
_ENOUGH = 320, 240  # pixels that they are reduced from
_LEVELS = 8  # of each colour, in histograms
_AROUND = 12  # frames on each side that a cut is held against
_TIMES = 3.0  # their mean difference that a cut's is, at least
_LEAST = 0.02  # the least difference of a cut, 0 … 1


class CutFinder:
    """Compares each frame, reduced, with the one before it, as frames pass.

    Attributes:
        bouts: When something moves, found in the same small pictures.
    """

    def __init__(self) -> None:
        self._rows = array("d")  # seconds, difference and change of colours, frame by frame
        self._before: tuple[UInt8, Float64] | None = None
        self.bouts = BoutFinder()

    def watch(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        """Yield frames as they are; the picture of each is made once."""
        for frame in frames:
            picture = frame.picture()
            self._rows.extend((frame.seconds, *self._changes(picture)))
            assert self._before is not None
            self.bouts.watch(frame.seconds, self._before[0])
            yield frame._replace(picture=_made(picture))

    def _changes(self, picture: UInt8) -> tuple[float, float]:
        """Return by how much grey values and colours differ from the frame before, 0 … 1."""
        # of a large picture every so many pixels: to average all takes longer than to decode them
        step = max(1, min(picture.shape[0] // _ENOUGH[1], picture.shape[1] // _ENOUGH[0]))
        small = cv2.resize(picture[::step, ::step], _SIZE, interpolation=cv2.INTER_AREA)
        grey = cv2.cvtColor(small, cv2.COLOR_RGB2GRAY)
        bins = [_LEVELS] * 3
        histogram = cv2.calcHist([small], [0, 1, 2], None, bins, [0, 256] * 3) / grey.size
        before, self._before = self._before, (grey, histogram)
        if before is None:
            return 0.0, 0.0
        difference = cv2.norm(grey, before[0], cv2.NORM_L1) / (255 * grey.size)
        return difference, cv2.norm(histogram, before[1], cv2.NORM_L1) / 2

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


def _made(picture: UInt8) -> Callable[[], UInt8]:
    return lambda: picture
