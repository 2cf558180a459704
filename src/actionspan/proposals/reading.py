"""Reading and checking proposals in ActivityNet result form, whoever wrote them."""

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeGuard

from actionspan.errors import InputError
from actionspan.proposals.result_stream import read_results
from actionspan.proposals.writing import Row

_FORM = 'not of the form {"segment": [start, end], "score": number}'


def read_proposals(path: Path, *, below_zero: bool = False) -> dict[str, list[Row]]:
    """Read `{"results": {video_id: [{"score": …, "segment": [start, end]}, …]}}`.

    Other keys of the file are ignored, other keys of a row are kept.

    Args:
        path: The file.
        below_zero: Whether a score may be below 0. To rank proposals only their order counts, so
            that scoring takes such scores (logits); Soft-NMS multiplies scores by factors below 1,
            which would lift them.

    Raises:
        InputError: The file is missing or not in that form; the line names the file, the video
            and the row, counted from 1.
    """
    return dict(iterate_proposals(path, below_zero=below_zero))


def iterate_proposals(path: Path, *, below_zero: bool = False) -> Iterator[tuple[str, list[Row]]]:
    """Yield what `read_proposals` returns, video by video; only one is in memory."""
    for video_id, rows in read_results(path):
        if not isinstance(rows, list):
            kind = type(rows).__name__
            raise InputError(f"{path}: video {video_id!r}, proposals: a list is needed, not {kind}")
        for number, row in enumerate(rows, start=1):
            if wrong := _what_is_wrong(row, below_zero):
                raise InputError(f"{path}: video {video_id!r}, proposal {number}: {wrong}")
        yield video_id, rows


def _what_is_wrong(row: Any, below_zero: bool) -> str:
    """Say in a few words why a row is no proposal, or nothing."""
    segment, score = (row.get("segment"), row.get("score")) if isinstance(row, dict) else ((), None)
    if not (isinstance(segment, list) and len(segment) == 2):
        return _FORM
    start, end = segment
    if not (_is_number(start) and _is_number(end) and _is_number(score)):
        return _FORM
    wrong = ""
    if not all(map(math.isfinite, (start, end, score))):
        wrong = "not finite"
    elif start > end:
        wrong = "start is after end"
    elif score < 0 and not below_zero:
        wrong = "a score of 0 or more is needed here"
    return wrong and f"[{start:g}, {end:g}] with score {score:g}: {wrong}"


def _is_number(value: Any) -> TypeGuard[float]:
    """Return whether this is a number that a float can hold, NaN and infinities included."""
    return isinstance(value, float) or type(value) is int and abs(value) <= sys.float_info.max
