"""What is known of each step of a video: its labels, the instance it lies in, its place.

| columns | what |
|---|---|
| 0, 1, 2 | share of the step in a region of start, action and end: `temporal.labels` |
| 3, 4 | steps from its middle back to the start and on to the end of its instance; 0 outside |
| 5 | 1 inside the video, 0 where a window passes its end |
| 6 | the part of the training videos that its video belongs to; `NO_PART` of other videos |

A step's instance is the shortest of those that its middle lies in.
"""

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from actionspan.arrays import Float32, Float64
from actionspan.temporal.labels import KINDS

COLUMNS = KINDS + 4
BEFORE, AFTER, INSIDE, PART = range(KINDS, COLUMNS)
NO_PART = -1


def video_targets(labels: ArrayLike, segments: Float64, part: int) -> Float32:
    """Return (T, 7) of a video's labels (T, 3) and its instances (K, 2) in steps."""
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
