"""The segments that a density is asked for: a lattice, and pairs of peaks.

Lengths of the lattice rise by a constant factor, and segments of one length are a constant share of
it apart. So the nearest cell overlaps any segment about equally well, be it two seconds or an hour
long, and their number grows with the length of the video, not with its square. Pairs of a peak of
the start curve and one of the end curve are finer than the lattice and come on top.
"""

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from actionspan.arrays import Float64
from actionspan.proposals.settings import LatticeSettings
from actionspan.temporal.labels import END, START


class Lengths(NamedTuple):
    """The shortest and longest segment of a lattice, in seconds."""

    shortest: float
    longest: float


def usual_lengths(lengths: Iterable[float]) -> Lengths:
    """Return the range of all but the most unusual lengths, widened by a margin.

    Raises:
        ValueError: No length is above 0.
    """
    given = np.array([length for length in lengths if length > 0])
    if not len(given):
        raise ValueError("no instance has a length")
    low, high = np.quantile(given, (0.01, 0.99))
    return Lengths(float(low * 0.5), float(high * 2.0))


def lattice(steps: int, shortest: float, longest: float, settings: LatticeSettings) -> Float64:
    """Return the cells (N, 2) of a video of `steps` steps, as starts and ends in steps.

    No cell is shorter than a step or longer than the video; lengths are in steps.
    """
    cells = []
    for length, places in lattice_lengths(steps, shortest, longest, settings):
        starts = np.linspace(0, steps - length, places)
        cells.append(np.stack([starts, starts + length], axis=1))
    return np.concatenate(cells)


def lattice_lengths(
    steps: int, shortest: float, longest: float, settings: LatticeSettings
) -> Iterator[tuple[float, int]]:
    """Yield the lengths of a lattice and the number of its cells of each length."""
    length = min(max(shortest, 1.0), float(steps))
    longest = min(max(longest, length), float(steps))
    while True:
        yield length, math.ceil((steps - length) / (length * settings.stride) - 1e-9) + 1
        if length >= longest:
            return
        length = min(length * settings.ratio, longest)


_STARTS = 256  # starts paired at once


def peaks(curve: Float64) -> tuple[Float64, Float64]:
    """Return the places (K,), in steps, and heights (K,) of the local maxima of a curve (T,)."""
    return peaks_inside(np.pad(curve, 1))


def peaks_inside(curve: Float64, first: int = 0) -> tuple[Float64, Float64]:
    """Return `peaks` at all values of a curve but its ends; the second value is for `first`.

    As a boundary lies inside a step, a place is the mean of the maximum and its neighbours,
    weighted by the curve.
    """
    before, here, after = curve[:-2], curve[1:-1], curve[2:]
    top = np.flatnonzero((here > before) & (here >= after) & (here > 0))
    around = np.stack([before, here, after])[:, top]
    places = first + top + 0.5 + (around[2] - around[0]) / around.sum(axis=0)
    return places, here[top]


def peak_pairs(curves: ArrayLike, shortest: float, longest: float, most: int) -> Float64:
    """Return the at most `most` pairs (N, 2) of highest product of both peaks, in steps.

    Curves are (T, 3); lengths of a pair are in steps.
    """
    values = np.asarray(curves, np.float64)
    (starts, first), (ends, second) = peaks(values[:, START]), peaks(values[:, END])
    best, scores = np.zeros((0, 2)), np.zeros(0)
    lowest = np.searchsorted(ends, starts + shortest)  # the ends that each start may have
    counts = np.maximum(np.searchsorted(ends, starts + longest, side="right") - lowest, 0)
    for begin in range(0, len(starts), _STARTS):
        number = counts[begin : begin + _STARTS]
        rows = begin + np.repeat(np.arange(len(number)), number)
        earlier = np.repeat(np.cumsum(number) - number, number)
        columns = lowest[rows] + np.arange(len(rows)) - earlier
        scores = np.concatenate([scores, first[rows] * second[columns]])
        pairs = np.concatenate([best, np.stack([starts[rows], ends[columns]], axis=1)])
        kept = np.argsort(-scores, kind="stable")[:most]
        best, scores = pairs[kept], scores[kept]
    return best
