"""Where the names of true instances stand in a timeline: none is left out, none covers another."""

import unicodedata
from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from actionspan.dataset.tables import Instance

_CHARACTER = 0.011  # of the axis: the width of a letter
_LONGEST = 90  # letters of a name


class Inside(NamedTuple):
    """A name in the middle of its bar, or behind it."""

    lane: int
    at: float  # its middle, or its left end
    text: str
    behind: bool


class Below(NamedTuple):
    """A name in a row below all bars, of one instance or of several that follow each other."""

    row: int
    at: float  # its middle
    text: str
    start: float  # of the first instance
    end: float  # of the last one


def shortened(text: str) -> str:
    """Return a name that fits into a figure: matplotlib makes room for it until none is left."""
    if _letters(text) <= _LONGEST:
        return text
    room = takewhile(lambda end: _letters(text[:end]) < _LONGEST, range(1, len(text)))
    return f"{text[: max(room)]}…"


def lanes_of(instances: Sequence[Instance]) -> list[int]:
    """Return for each instance the first lane in which it overlaps no earlier instance."""
    ends: list[float] = []
    lanes = [0] * len(instances)
    for index, instance in sorted(enumerate(instances), key=lambda item: item[1].start):
        free = (lane for lane, end in enumerate(ends) if end <= instance.start)
        lane = next(free, len(ends))
        if lane == len(ends):
            ends.append(0.0)
        ends[lane], lanes[index] = instance.end, lane
    return lanes


def place_names(
    instances: Sequence[Instance], lanes: Sequence[int], duration: float
) -> tuple[list[Inside], list[Below]]:
    """Return where the names of instances stand.

    Names go inside or behind their bars where there is room. The others go below, where neighbours
    of one name share it if their own would not fit side by side.
    """
    inside, crowded = [], []
    ordered = sorted(zip(instances, lanes, strict=True), key=lambda pair: pair[0].start)
    for place, (instance, lane) in enumerate(ordered):
        if not instance.label:
            continue
        width = _width(instance.label, duration)
        later = [other.start for other, other_lane in ordered[place + 1 :] if other_lane == lane]
        if width <= instance.end - instance.start:
            middle = (instance.start + instance.end) / 2
            inside.append(Inside(lane, middle, instance.label, behind=False))
        elif instance.end + width <= min(later, default=duration):
            inside.append(Inside(lane, instance.end + 0.004 * duration, instance.label, True))
        else:
            crowded.append(instance)
    return inside, _rows(_groups(crowded, duration), duration)


def _groups(instances: Sequence[Instance], duration: float) -> list[list[Instance]]:
    """Return runs of instances of one name that lie closer than their names are wide."""
    groups: list[list[Instance]] = []
    for instance in instances:
        if groups and groups[-1][-1].label == instance.label:
            last = groups[-1][-1]
            apart = (instance.start + instance.end - last.start - last.end) / 2
            if apart < _width(instance.label, duration):
                groups[-1].append(instance)
                continue
        groups.append([instance])
    return groups


def _rows(groups: Sequence[Sequence[Instance]], duration: float) -> list[Below]:
    """Put each group's name into the first row where it is free."""
    ends: list[float] = []  # of the last name of each row
    names = []
    for group in groups:
        start, end = group[0].start, max(each.end for each in group)
        text = group[0].label + (f" ×{len(group)}" if len(group) > 1 else "")
        half = _width(text, duration) / 2
        at = min(max((start + end) / 2, half), max(duration - half, half))
        row = next((row for row, last in enumerate(ends) if last <= at - half), len(ends))
        if row == len(ends):
            ends.append(0.0)
        ends[row] = at + half
        names.append(Below(row, at, text, start, end))
    return names


def _width(text: str, duration: float) -> float:
    """Return how much of the axis a name takes in seconds; a Chinese character is two letters."""
    return _CHARACTER * (_letters(text) + 1) * duration


def _letters(text: str) -> int:
    return sum(1 + (unicodedata.east_asian_width(each) in "WF") for each in text)
