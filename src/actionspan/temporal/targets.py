"""What is known of each step of a video: its labels, the instance it lies in, its place.

| columns | what |
|---|---|
| 0, 1, 2 | share of the step in a region of start, action and end: `temporal.labels` |
| 3, 4 | steps from its middle back to the start and on to the end of its instance; 0 outside |
| 5 | 1 inside the video, 0 where a window passes its end |
| 6 | the part of the training footage that it belongs to; `NO_PART` of other videos |

A step's instance is the shortest of those that its middle lies in.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import ArrayLike

from actionspan.arrays import Float32, Float64, Int64
from actionspan.features.store import UNSHARED
from actionspan.temporal.labels import KINDS

COLUMNS = KINDS + 4
BEFORE, AFTER, INSIDE, PART = range(KINDS, COLUMNS)
NO_PART = -1


def video_targets(labels: ArrayLike, segments: Float64, part: ArrayLike) -> Float32:
    """Return (T, 7) of a video's labels (T, 3), instances (K, 2) in steps, and steps' parts."""
    labels = np.asarray(labels)
    middles = np.arange(len(labels)) + 0.5
    targets = np.zeros((len(labels), COLUMNS), np.float32)
    targets[:, :KINDS] = labels
    targets[:, INSIDE] = 1
    targets[:, PART] = part
    longest_first = np.argsort(segments[:, 0] - segments[:, 1], kind="stable")
    for start, end in segments[longest_first]:
        within = (middles > start) & (middles < end)
        targets[within, BEFORE] = middles[within] - start
        targets[within, AFTER] = end - middles[within]
    return targets


def divide(video_ids: Iterable[str], parts: int) -> dict[str, int]:
    """Return the part, from 0, of each video: they take turns in the order of a hash of their ids.

    No part has two videos more than another. An id's part depends on the other ids.
    """
    ranked = sorted(set(video_ids), key=lambda name: hashlib.sha256(name.encode()).digest())
    return {name: place % parts for place, name in enumerate(ranked)}


def divide_steps(footage: Mapping[str, Int64], parts: int) -> dict[str, Int64]:
    """Return the part (T,) of each step of the training videos.

    It is that of its video, as `divide` has it, or of the footage that it shares with others: that
    goes as a whole to the part, of those of its videos, which has the fewest steps so far. Footage
    as large as a part is no footage but what all videos look like, and stays with them.

    Args:
        footage: What the steps (T,) of each video show: `features.footage.shared_footage`.
        parts: How many.
    """
    own = divide(footage, parts)
    divided = {name: np.full(len(shown), own[name], np.int64) for name, shown in footage.items()}
    where: defaultdict[int, list[tuple[str, Int64]]] = defaultdict(list)
    for name in sorted(footage):
        for shown in np.unique(footage[name][footage[name] != UNSHARED]).tolist():
            where[shown].append((name, np.flatnonzero(footage[name] == shown)))
    sizes = {shown: sum(len(rows) for _, rows in places) for shown, places in where.items()}
    most = sum(map(len, footage.values())) / parts
    shared = sorted((-size, shown) for shown, size in sizes.items() if size < most)
    load = np.bincount(np.concatenate(list(divided.values())), minlength=parts)
    for _, shown in shared:
        for name, rows in where[shown]:
            load[own[name]] -= len(rows)
    for negative, shown in shared:
        part = min({own[name] for name, _ in where[shown]}, key=lambda one: (load[one], one))
        load[part] -= negative
        for name, rows in where[shown]:
            divided[name][rows] = part
    return divided
