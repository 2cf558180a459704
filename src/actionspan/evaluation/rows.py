"""What every protocol starts from: checked rows, and proposals matched to their videos.

Ids are compared as they are. An id that finds no video is tried with `v_` put before it or taken
away, because ActivityNet's annotations exist with and without it. Where both `x` and `v_x` are
given they are two videos, and each matches only itself.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from actionspan.annotations.names import other_names
from actionspan.arrays import Float64
from actionspan.storage.scratch import VideoTables

NO_PROPOSALS: Float64 = np.empty((0, 3))


def check_truth(ground_truth: Mapping[str, ArrayLike]) -> VideoTables:
    """Return the (G, 2) instances of every video, also of videos without any.

    Raises:
        ValueError: A row is reversed or not finite, or no video has an instance.
    """
    if isinstance(ground_truth, VideoTables) and _are_sound(ground_truth.rows):
        truth = ground_truth
    else:
        checked = (
            (video_id, _check_rows(given, 2, f"video {video_id!r}, instance"))
            for video_id, given in ground_truth.items()
        )
        truth = VideoTables(checked, 2)
    if not any(map(len, truth.values())):
        raise ValueError("the ground truth has no instance")
    return truth


def with_instances(truth: Mapping[str, Float64]) -> VideoTables:
    """Return the videos that have an instance."""
    return VideoTables(((video, rows) for video, rows in truth.items() if len(rows)), 2)


def match_proposals(
    proposals: Mapping[str, ArrayLike], truth: Mapping[str, Float64]
) -> tuple[Mapping[str, Float64], int]:
    """Return the (P, 3) proposals of the videos of `truth`, and how many of other videos there are.

    The videos have their ids of `truth` and the order of `proposals`. A video's proposals are
    sorted best first; equal scores keep the order in which they are given.

    Raises:
        ValueError: A row is reversed or not finite, or two ids of the proposals mean one video.
    """
    names = {video: name for name, video in match_ids(proposals, truth).items()}
    if isinstance(proposals, VideoTables) and _are_sound(proposals.rows):
        count = sum(len(proposals[name]) for name in names.values())
    else:
        given = ((f"video {name!r}, proposal", proposals[name]) for name in names.values())
        count = sum(len(_check_rows(rows, 3, what)) for what, rows in given)
    total = sum(map(len, map(np.asarray, proposals.values())))
    return _Ranked(proposals, names), total - count


class _Ranked(Mapping[str, Float64]):
    """The proposals of each video, sorted on access: copies of all would double the memory."""

    def __init__(self, proposals: Mapping[str, ArrayLike], names: Mapping[str, str]) -> None:
        self._proposals, self._names = proposals, names

    def __getitem__(self, video: str) -> Float64:
        rows = np.asarray(self._proposals[self._names[video]], np.float64).reshape(-1, 3)
        if (rows[1:, 2] > rows[:-1, 2]).any():
            rows = rows[np.argsort(-rows[:, 2], kind="stable")]
        return rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, video: object) -> bool:
        return video in self._names


def _are_sound(rows: Float64) -> bool:
    """Return whether `_check_rows` accepts the rows (N, columns) of all videos."""
    return bool(np.isfinite(rows).all() and (rows[:, 0] <= rows[:, 1]).all())


def _check_rows(rows: ArrayLike, columns: int, what: str) -> Float64:
    """Return (N, columns) rows of start, end and perhaps score.

    Raises:
        ValueError: The first row that is reversed or not finite, counted from 1 and named `what`.
    """
    table = np.asarray(rows, dtype=np.float64)
    if table.size == 0:
        return np.empty((0, columns))
    if table.ndim != 2 or table.shape[1] != columns:
        raise ValueError(f"{what}s of shape {table.shape}, not (N, {columns})")
    finite = np.asarray(np.isfinite(table).all(axis=1))
    good = finite & (table[:, 0] <= table[:, 1])
    if not good.all():
        bad = int(np.argmin(good))
        start, end, *score = table[bad].tolist()
        shown = f"[{start:g}, {end:g}]" + (f" with score {score[0]:g}" if score else "")
        why = "start is after end" if finite[bad] else "not finite"
        raise ValueError(f"{what} {bad + 1}: {shown}: {why}")
    return table


def match_ids(proposals: Mapping[str, Any], ground_truth: Mapping[str, Any]) -> dict[str, str]:
    """Return the ground-truth id of each proposals id that has one, with or without `v_`.

    An exact match takes precedence.

    Raises:
        ValueError: Two ids of the proposals mean one video, and neither is its own.
    """
    matched: dict[str, str] = {}
    taken: dict[str, str] = {}
    for name in proposals:
        if name in ground_truth:
            matched[name] = name
            continue
        for video_id in other_names(name):
            if video_id in ground_truth and video_id not in proposals:
                if video_id in taken:
                    raise ValueError(f"{taken[video_id]!r} and {name!r} mean one video; keep one")
                matched[name] = video_id
                taken[video_id] = name
                break
    return matched
