"""Reading and checking proposals in ActivityNet result form, ours or anybody's."""

import sys
from pathlib import Path
from typing import Any

from actionspan.errors import InputError
from actionspan.files.storage import read_json
from actionspan.proposals.writing import Row

LARGEST = sys.float_info.max  # NaN, infinities and integers beyond it compare false


def read_proposals(path: Path) -> dict[str, list[Row]]:
    """Read `{"results": {video_id: [{"score": …, "segment": [start, end]}, …]}}`.

    Other keys of the file are ignored, other keys of a row are kept.

    Raises:
        InputError: The file is missing or not in that form; the line names the file, the video
            and the row, counted from 1.
    """
    content = read_json(path)
    results = content.get("results") if isinstance(content, dict) else None
    if not isinstance(results, dict):
        raise InputError(
            f'{path}: no proposals in it; write {{"results": {{video: [{{"score": 0.9, '
            '"segment": [1.0, 2.5]}]}}'
        )
    for video_id, rows in results.items():
        if not isinstance(rows, list):
            raise InputError(f"{path}: video {video_id!r}: not a list of proposals")
        for number, row in enumerate(rows, start=1):
            wrong = _what_is_wrong(row)
            if wrong:
                raise InputError(f"{path}: video {video_id!r}: row {number}: {wrong}")
    return results


def _what_is_wrong(row: Any) -> str:
    """Say in a few words why a row is no proposal, or nothing."""
    if not isinstance(row, dict):
        return 'not a proposal; write {"score": 0.9, "segment": [1.0, 2.5]}'
    segment = row.get("segment")
    if not (isinstance(segment, list) and len(segment) == 2 and all(map(_is_number, segment))):
        return f"segment {segment!r} is not [start, end] in seconds"
    if segment[0] > segment[1]:
        return f"segment {segment!r} is reversed; the start comes first"
    score: Any = row.get("score")
    if not _is_number(score) or score < 0:
        return f"score {score!r} is not a number of 0 or more"
    return ""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST
