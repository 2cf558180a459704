"""Segments from a peak of the start curve to a peak of the end curve, finer than the lattice."""

import numpy as np
from numpy.typing import ArrayLike

from actionspan.arrays import Float64
from actionspan.proposals.pgm import END, START

_BLOCK = 256  # starts paired at once


def peaks(curve: Float64) -> tuple[Float64, Float64]:
    """Return the places (K,), in steps, and heights (K,) of the local maxima of a curve (T,).

    A place is the mean of the maximum and its neighbours, weighted by the curve: a boundary lies
    inside a step.
    """
    padded = np.pad(curve, 1)
    before, here, after = padded[:-2], padded[1:-1], padded[2:]
    top = np.flatnonzero((here > before) & (here >= after) & (here > 0))
    around = np.stack([before, here, after])[:, top]
    places = top + 0.5 + (around[2] - around[0]) / around.sum(axis=0)
    return places, here[top]


def peak_pairs(curves: ArrayLike, shortest: float, longest: float, most: int) -> Float64:
    """Return (N, 2) the pairs of highest product of both peaks, in steps.

    Args:
        curves: (T, 3) start, actionness and end.
        shortest: Of a pair, in steps.
        longest: Of a pair, in steps.
        most: How many.
    """
    values = np.asarray(curves, np.float64)
    (starts, first), (ends, second) = peaks(values[:, START]), peaks(values[:, END])
    best, scores = np.zeros((0, 2)), np.zeros(0)
    lowest = np.searchsorted(ends, starts + shortest)  # the ends that each start may have
    counts = np.maximum(np.searchsorted(ends, starts + longest, side="right") - lowest, 0)
    for begin in range(0, len(starts), _BLOCK):
        number = counts[begin : begin + _BLOCK]
        rows = begin + np.repeat(np.arange(len(number)), number)
        columns = (
            lowest[rows] + np.arange(len(rows)) - np.repeat(np.cumsum(number) - number, number)
        )
        scores = np.concatenate([scores, first[rows] * second[columns]])
        pairs = np.concatenate([best, np.stack([starts[rows], ends[columns]], axis=1)])
        kept = np.argsort(-scores, kind="stable")[:most]
        best, scores = pairs[kept], scores[kept]
    return best
