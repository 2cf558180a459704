"""The truth of each step of a video: its labels and its place.

| columns | what |
|---|---|
| 0, 1, 2 | share of the step in a region of start, action and end |
| 3 | 1 inside the video, 0 where a window passes its end |
| 4 | the part of the training footage that it belongs to; `NO_PART` of other videos |
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike

from actionspan.arrays import Float32, Float64, Int64
from actionspan.features.store import UNSHARED
from actionspan.temporal.settings import LabelRule

KINDS = 3
START, ACTIONNESS, END = range(KINDS)  # columns of labels and probabilities
_ROUNDING = 1e-9  # of a bin: above the rounding errors of g, far below any label


def boundary_regions(
    segments: Float64, steps: int, rule: LabelRule, boundary_ratio: float
) -> Float64:
    """Return where the start, action and end region of each instance begins and ends, (K, 3, 2).

    Rule `bsn`: the action region is the instance; the boundary regions are centred on its start
    and end and max(one bin, `boundary_ratio` of the instance) wide.
    Rule `mtn` (paper 001, section 3.3): the boundary regions are one bin wide; the action region is
    the rest of the instance. Inside an instance that is the paper's g_a = 1 - g_s - g_e;
    outside, where the printed formula would call background an action, g_a is 0.

    Segments (K, 2) and regions are in 0…1 of the video. A region that ends before it begins is
    empty.
    """
    width = 1.0 / steps
    start, end = segments[:, 0], segments[:, 1]
    if rule == "bsn":
        half = np.maximum(width, boundary_ratio * (end - start)) / 2  # (K,)
        inset = np.zeros_like(half)
    else:
        half = inset = np.full(len(segments), width / 2)
    begins = np.stack([start - half, start + inset, end - half], axis=1)  # (K, 3)
    ends = np.stack([start + half, end - inset, end + half], axis=1)  # (K, 3)
    return np.stack([begins, ends], axis=2)  # (K, 3, 2)


def boundary_overlaps(
    segments: Float64,
    duration_seconds: float,
    *,
    steps: int = 100,
    rule: LabelRule = "bsn",
    boundary_ratio: float = 0.1,
) -> Float64:
    """Return g (steps, 3) in 0…1: the largest part of each bin that an instance's region covers.

    Segments are cut to the video. The arguments and errors are as in `boundary_labels`.
    """
    segments = np.asarray(segments, dtype=np.float64).reshape(-1, 2)
    if not 0 < duration_seconds < np.inf:
        raise ValueError(f"duration_seconds {duration_seconds}: a number above 0")
    if rule not in get_args(LabelRule):
        raise ValueError(f"rule {rule!r}: one of {', '.join(get_args(LabelRule))}")
    wrong = ~(np.isfinite(segments).all(axis=1) & (segments[:, 0] <= segments[:, 1]))
    if wrong.any():
        raise ValueError(f"segment {segments[wrong][0].tolist()}: start ≤ end, both finite")
    if not len(segments):
        return np.zeros((steps, KINDS))
    inside = np.clip(segments / duration_seconds, 0.0, 1.0)
    regions = boundary_regions(inside, steps, rule, boundary_ratio)  # (K, 3, 2)
    return covered(regions, steps)


def covered(regions: Float64, steps: int) -> Float64:
    """Return (steps, 3) the largest part of each bin that one of regions (K, 3, 2) covers."""
    edges = np.arange(steps + 1) / steps
    begins = np.maximum(edges[:-1, None, None], regions[..., 0])  # (steps, K, 3)
    ends = np.minimum(edges[1:, None, None], regions[..., 1])  # (steps, K, 3)
    shares = np.clip((ends - begins) * steps, 0.0, 1.0)
    largest: Float64 = shares.max(axis=1, initial=0.0)
    return largest


def boundary_labels(
    segments: Float64,
    duration_seconds: float,
    *,
    steps: int = 100,
    rule: LabelRule = "bsn",
    boundary_ratio: float = 0.1,
) -> Float32:
    """Return the labels of one video: 1 where more than half of a bin is covered, else 0.

    Exactly half does not count (g > 0.5, whatever the rounding of decimal times).

    Args:
        segments: (K, 2) starts and ends of the action instances in seconds; K may be 0.
        duration_seconds: Length of the video.
        steps: Bins of the video.
        rule: `bsn` or `mtn`: see `boundary_regions`.
        boundary_ratio: Width of the boundary regions of `bsn`, as a share of the instance.

    Returns:
        (steps, 3) start, action and end, in 0…1.

    Raises:
        ValueError: The duration is not above 0, a segment is reversed or not finite, or the rule is
            unknown.
    """
    overlaps = boundary_overlaps(
        segments, duration_seconds, steps=steps, rule=rule, boundary_ratio=boundary_ratio
    )
    labels: Float32 = (overlaps > 0.5 + _ROUNDING).astype(np.float32)
    return labels


COLUMNS = KINDS + 2
INSIDE, PART = range(KINDS, COLUMNS)
NO_PART = -1


def video_targets(labels: ArrayLike, part: ArrayLike) -> Float32:
    """Return (T, 5) of a video's labels (T, 3) and its steps' parts."""
    labels = np.asarray(labels)
    targets = np.ones((len(labels), COLUMNS), np.float32)
    targets[:, :KINDS] = labels
    targets[:, PART] = part
    return targets


def divide(video_ids: Iterable[str], parts: int) -> dict[str, int]:
    """Return the part, from 0, of each video: they take turns in the order of a hash of their ids.

    Parts differ by at most one video. An id's part depends on the other ids.
    """
    ranked = sorted(set(video_ids), key=lambda name: hashlib.sha256(name.encode()).digest())
    return {name: place % parts for place, name in enumerate(ranked)}


_FEWEST = 8  # steps of a stretch


def divide_steps(footage: Mapping[str, Int64], parts: int) -> dict[str, Int64]:
    """Return the part (T,) of each step of the training videos.

    `footage` (T,) of each video is from `features.footage.shared_footage`. A step
    is in the part of its video (`divide`), unless it shows footage that videos share: each piece
    goes as a whole to one of the parts of its videos, the one with the fewest steps so far. A piece
    as large as a part is what all videos look like, and stays with them. A single video is divided
    into stretches, so that each part leaves something to learn from.
    """
    if len(footage) == 1:
        ((name, steps),) = footage.items()
        parts = min(parts, max(len(steps) // _FEWEST, 1))
        return {name: np.arange(len(steps)) * parts // max(len(steps), 1)}
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
