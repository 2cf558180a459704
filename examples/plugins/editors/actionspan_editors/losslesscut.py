"""LosslessCut's project (.llc): the segments of one video, in seconds, as JSON5.

A segment without a name is an `action`. One without an end is a point; in version 1 it lasts to the
end of the video. Segments that are not selected are passed over: LosslessCut does not export them.
"""

import json
from collections.abc import Sequence
from typing import Any

from actionspan.annotations.formats.parsing import peek_json
from actionspan.annotations.formats.records import (
    UNLABELLED,
    Reading,
    Record,
    media_name,
    record_of_file,
    video_id_of,
)
from actionspan.annotations.formats.times import VideoEnd
from actionspan.errors import InputError
from actionspan_editors import details_of, library

SUFFIX = ".llc"  # a file of this format is about one video


def sniff(text: str) -> bool:
    """Return whether the text is an object with `cutSegments` near its beginning."""
    return text.lstrip().startswith("{") and "cutSegments" in text[:10_000]


def read(file: str, text: str, strict: bool = False) -> Reading:
    """Return the video of a project with its segments.

    Raises:
        InputError: It is no such project, or `json5` is needed and not installed.
    """
    content = peek_json(text)  # json5 is slow
    if content is None:
        content = _parse_json5(file, text)
    segments = content.get("cutSegments") if isinstance(content, dict) else None
    if not isinstance(segments, list):
        raise InputError(f"{file}: no list 'cutSegments' as in a project of LosslessCut")
    reading = Reading(strict=strict)
    media = content.get("mediaFileName")
    if isinstance(media, str) and media:
        record = reading.record_of(file, "mediaFileName", video_id_of(media))
    else:
        record = record_of_file(file, reading)
    if record is None:
        return reading
    for place, segment in enumerate(segments):
        row = f"cutSegments[{place}]"
        if isinstance(segment, dict):
            _add(row, segment, record, content.get("version") == 1)
        else:
            reading.reject(file, row, "not an object with start, end and name", record.video_id)
    return reading


def write(records: Sequence[Record]) -> str:
    """Return the project of a video, in version 2, which is JSON too.

    Raises:
        InputError: There is another number of videos than one.
    """
    if len(records) != 1:
        raise InputError(f"LosslessCut has a project for each video, and there are {len(records)}")
    (record,) = records
    segments = []
    for raw, (start, end, label) in zip(record.instances, record.parsed(), strict=True):
        segment: dict[str, Any] = {"start": start, "name": label}
        segment |= {"end": end} if end != start else {}
        segments.append(segment | ({"tags": raw.details} if raw.details else {}))
    content = {"version": 2, "mediaFileName": media_name(record), "cutSegments": segments}
    return json.dumps(content, indent=2) + "\n"


def _parse_json5(file: str, text: str) -> Any:
    try:
        return library("json5").loads(text)
    except ValueError as error:
        raise InputError(f"{file}: not JSON5: {error}") from None
    except RecursionError:
        raise InputError(f"{file}: not a project of LosslessCut: nested too deeply") from None


def _add(row: str, segment: dict[str, Any], record: Record, is_first_version: bool) -> None:
    if segment.get("selected") is False:
        return
    start, end = segment.get("start", 0), segment.get("end")  # version 1 leaves out a start at 0
    point = end is None and not is_first_version
    if end is None:
        end = start if point else VideoEnd()
    name, details = segment.get("name"), details_of(segment.get("tags"))
    bare = name in (None, "")
    record.add(
        row, start, end, UNLABELLED if bare else name, **details, point=point, unlabelled=bare
    )
