"""Cuts and bouts: times at which instances may begin and end, from the frames alone."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from actionspan.arrays import Float64
from actionspan.video.settings import BOUTS, CUTS

_SHOT = 15.0  # seconds, on average, below which shots make footage edited


class Marks(NamedTuple):
    """The cuts and bouts of a video; none of either where there are none, or nobody looked."""

    cuts: Float64 = np.zeros((0, 2))  # (K, 2), see `CutFinder.found`
    bouts: Float64 = np.zeros((0, 3))  # (B, 3), see `BoutFinder.found`

    def is_edited(self, duration: float) -> bool:
        """Return whether a video is cut so often that its shots matter more than its motion."""
        return len(self.cuts) > max(2.0, duration / _SHOT)

    def moves(self, duration: float) -> Float64:
        """Return the starts and ends (B, 2) of the bouts of a video, none if it is edited."""
        return self.bouts[: 0 if self.is_edited(duration) else None, :2]


WIDTHS = {CUTS: 2, BOUTS: 3}


def marks_of(facts: Mapping[str, Any]) -> Marks:
    """Return the marks among a video's facts, or in its group of a file."""
    found = {key: np.asarray(facts[key], np.float64) for key in WIDTHS if key in facts}
    return Marks(**found)
