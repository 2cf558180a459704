"""Up to which number of ranks one exchange is faster than another, by their fitted curves."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Curve = Sequence[float]
"""(a, b, c) of a/n + b·n + c seconds on n ranks."""

FEWEST_RANKS = 2
# Times closer than this share of their size count as equal.
_EQUAL = 1e-9
# No cluster has as many ranks; beyond it float64 could not tell n from n + 1 at some point.
_MOST_RANKS = 1e12


def crossovers(curves: Mapping[str, Curve]) -> dict[str, dict[str, Any]]:
    """Compare the curve of each exchange with those of the others.

    Returns:
        By exchange `{"crossover": {other: n}, "faster_than": {other: [[first, last], …]}}`:
        the ranges of ranks, from 2, on which it is the faster (last is None where the range has
        no end), and the last number of the range that begins at 2 and ends, else None.
    """
    compared = {}
    for name, curve in curves.items():
        ranges = {other: faster_ranges(curve, curves[other]) for other in curves if other != name}
        until = {
            other: faster[0][1] if faster and faster[0][0] == FEWEST_RANKS else None
            for other, faster in ranges.items()
        }
        compared[name] = {"crossover": until, "faster_than": ranges}
    return compared


def faster_ranges(curve: Curve, against: Curve) -> list[list[int | None]]:
    """Return the ranges [first, last] of n ≥ 2 on which `curve` lies below `against`.

    n times the difference of two curves is a quadratic in n: its sign changes twice at most, and
    only next to a root, so all integers near a root are looked at, which cover each gap.
    """
    inverse, slope, level = (mine - other for mine, other in zip(curve, against, strict=True))

    def is_faster(ranks: int) -> bool:
        size = abs(curve[0]) / ranks + abs(curve[1]) * ranks + abs(curve[2])
        return inverse / ranks + slope * ranks + level < -_EQUAL * size

    starts = {FEWEST_RANKS}
    for root in np.roots([slope, level, inverse]):
        if abs(root.imag) <= _EQUAL * abs(root) and FEWEST_RANKS - 2 < root.real < _MOST_RANKS:
            starts |= {int(root.real) + step for step in (-1, 0, 1, 2)}
    ranges: list[list[int | None]] = []
    beginning = None
    for start in sorted(number for number in starts if number >= FEWEST_RANKS):
        if is_faster(start):
            beginning = start if beginning is None else beginning
        elif beginning is not None:
            ranges.append([beginning, start - 1])
            beginning = None
    if beginning is not None:
        ranges.append([beginning, None])
    return ranges
