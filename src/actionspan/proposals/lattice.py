"""A lattice of segments: all lengths and places in equal steps of overlap.

Lengths rise by a constant factor, and segments of one length are a constant share of it apart. So
the nearest cell overlaps any segment about equally well, be it two seconds or an hour long, and
their number grows with the length of the video, not with its square.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from actionspan.arrays import Float64
from actionspan.proposals.settings import LatticeSettings

_MARGIN = (0.5, 2.0)  # of the usual lengths: new videos have others
_USUAL = (0.01, 0.99)  # quantiles


class Lengths(NamedTuple):
    """The shortest and longest segment of a lattice, in seconds."""

    shortest: float
    longest: float


def usual_lengths(lengths: Iterable[float]) -> Lengths:
    """Return the range of all but the most unusual of these lengths, and a margin.

    Raises:
        ValueError: No length is above 0.
    """
    given = np.array([length for length in lengths if length > 0])
    if not len(given):
        raise ValueError("no instance has a length")
    low, high = np.quantile(given, _USUAL)
    return Lengths(float(low * _MARGIN[0]), float(high * _MARGIN[1]))


def lattice(steps: int, shortest: float, longest: float, settings: LatticeSettings) -> Float64:
    """Return the cells (N, 2) of a video of `steps` steps, as starts and ends in steps.

    No cell is shorter than a step or longer than the video; lengths are in steps.
    """
    length = min(max(shortest, 1.0), float(steps))
    longest = min(max(longest, length), float(steps))
    cells = []
    while True:
        places = math.ceil((steps - length) / (length * settings.stride) - 1e-9) + 1
        starts = np.linspace(0, steps - length, places)
        cells.append(np.stack([starts, starts + length], axis=1))
        if length >= longest:
            return np.concatenate(cells)
        length = min(length * settings.ratio, longest)
