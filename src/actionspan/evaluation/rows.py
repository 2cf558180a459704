"""What every protocol starts from: rows checked, and proposals put to the videos they are of.

Ids are compared as they are; one that finds no video is tried with `v_` put before or taken away,
because ActivityNet's annotations exist in both forms. Where both `x` and `v_x` are given they are
two videos, and each is only what it says.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actionspan.dataset.names import other_names

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def check_truth(ground_truth: Mapping[str, ArrayLike]) -> dict[str, Floats]:
    """Return the (G, 2) instances of every video, those without any too.

    Raises:
        ValueError: A row is reversed or not finite, or there is no instance at all.
    """
    truth = {
        video_id: check_rows(given, 2, f"video {video_id!r}, instance")
        for video_id, given in ground_truth.items()
    }
    if not any(map(len, truth.values())):
        raise ValueError("the ground truth has no instance")
    return truth


def match_proposals(
    proposals: Mapping[str, ArrayLike], truth: Mapping[str, Floats]
) -> tuple[dict[str, Floats], int]:
    """Return the (P, 3) proposals of the videos of `truth`, under their ids there.

    The order of the videos is that of `proposals`. Beside them stands the number of proposals
    left out, which are those of other videos.

    Raises:
        ValueError: A row is reversed or not finite, or two ids of the proposals mean one video.
    """
    ids = match_ids(proposals, truth)
    found = {ids[name]: check_rows(proposals[name], 3, f"video {name!r}, proposal") for name in ids}
    total = sum(len(np.asarray(rows)) for rows in proposals.values())
    return found, total - sum(map(len, found.values()))


def check_rows(rows: ArrayLike, columns: int, what: str) -> Floats:
    """Return rows of (start, end[, score]) as an array, refusing reversed and non-finite ones.

    Args:
        rows: (N, columns) numbers.
        columns: 2 for segments, 3 for proposals.
        what: What a row is, for the message, e.g. `"video 'a', proposal"`.

    Raises:
        ValueError: The first bad row, counted from 1.
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

    A video that is given under its own id is no other id's.

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
