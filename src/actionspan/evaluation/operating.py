"""How precise and how complete a reader's list is from a chance on, by label."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from actionspan.annotations.tables import Instance
from actionspan.proposals.segments import Row
from actionspan.proposals.selection import right_events

_MOST = 50  # points of a label


class Point(NamedTuple):
    """Of the events of at least a chance, the share that is right, and of instances that found."""

    chance: float
    precision: float
    recall: float


def operating_points(
    events: Mapping[str, Sequence[Row]], truth: Mapping[str, Sequence[Instance]]
) -> dict[str, list[Point]]:
    """Return what each chance makes of the events of a label.

    An event is right where it is the first to find an instance of its label at a tIoU of 0.5.

    Args:
        events: By video, of a model that has not seen the video, with chances.
        truth: All that happens in these videos, and in no others.

    Returns:
        Points from the highest chance to the lowest, at most 50, by label; where events have no
        labels, or all have the same, the one label is "".
    """
    labels = {str(row.get("label") or "") for name in truth for row in events.get(name, ())}
    several = len(labels) > 1
    chances: dict[str, list[float]] = defaultdict(list)
    right: dict[str, list[float]] = defaultdict(list)
    total: dict[str, int] = defaultdict(int)
    for name, instances in truth.items():
        ranked = sorted(events.get(name, ()), key=lambda row: -row["score"])
        here = {str(row.get("label") or "") for row in ranked} | {one.label for one in instances}
        for label in here if several else {""}:
            rows = [row for row in ranked if not several or row.get("label") == label]
            spans = [(one.start, one.end) for one in instances if not several or one.label == label]
            segments = [np.reshape(part, (-1, 2)) for part in ([r["segment"] for r in rows], spans)]
            chances[label] += [row["score"] for row in rows]
            right[label] += right_events(*segments).tolist()
            total[label] += len(spans)
    return {
        label: _points(np.array(chances[label]), np.array(right[label]), total[label])
        for label in sorted(chances)
        if chances[label] and total[label]
    }


def _points(chances: np.ndarray, right: np.ndarray, total: int) -> list[Point]:
    order = np.argsort(-chances, kind="stable")
    falling, found = chances[order], right[order].cumsum()
    last = np.flatnonzero(np.append(falling[1:] < falling[:-1], True))  # equal ones go together
    kept = last[np.unique(np.linspace(0, len(last) - 1, min(_MOST, len(last))).round().astype(int))]
    return [
        Point(
            round(float(falling[place]), 4),
            round(float(found[place] / (place + 1)), 4),
            round(float(found[place] / total), 4),
        )
        for place in kept
    ]
