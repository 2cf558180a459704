"""What the frames of a video alone say of where instances may begin and end."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from actionspan.arrays import Float64
from actionspan.video.settings import BOUTS, CUTS


class Marks(NamedTuple):
    """The cuts and bouts of a video; none of either where there are none, or nobody looked."""

    cuts: Float64 = np.zeros((0, 2))  # (K, 2), see `CutFinder.found`
    bouts: Float64 = np.zeros((0, 3))  # (B, 3), see `BoutFinder.found`


WIDTHS = {CUTS: 2, BOUTS: 3}


def marks_of(facts: Mapping[str, Any]) -> Marks:
    """Return the marks among a video's facts, or in its group of a file."""
    found = {key: np.asarray(facts[key], np.float64) for key in WIDTHS if key in facts}
    return Marks(**found)
