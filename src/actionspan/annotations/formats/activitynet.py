"""ActivityNet annotations: a JSON object with a "database", which has an entry for each video.

An entry holds subset, duration in seconds, number of frames, segments and labels; ActionFormer and
OpenTAD add the frame rate. Our own annotations.json has this format without it, with subject and
modifiers of an instance where they are known.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TextIO

from actionspan.annotations.formats.parsing import parse_json
from actionspan.annotations.formats.records import (
    DETAILS,
    Reading,
    Record,
    id_problem,
    positive,
    quoted,
    subset_name,
    subset_problem,
    text_problem,
)
from actionspan.annotations.formats.rejections import Rejection
from actionspan.errors import InputError, printable
from actionspan.storage.json_stream import members


class _Repeated(dict[str, Any]):
    """A JSON object with repeated keys, named by `again`: the first value of each counts."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__()
        self.again: list[str] = []
        for key, value in pairs:
            if key in self:
                self.again.append(key)
            else:
                self[key] = value


def sniff(text: str) -> bool:
    """Return whether the text is JSON with a key "database"."""
    return text.lstrip().startswith("{") and re.search(r'"database"\s*:', text) is not None


def read(file: str, text: str, strict: bool = False) -> Reading:
    """Read the official format; if `strict`, each entry names its subset."""
    content = parse_object(file, text)
    if not isinstance(content.get("database"), dict):
        raise InputError(f'{file}: no object "database" as in ActivityNet annotations')
    return read_entries(file, content["database"], "database.", strict)


def stream(file: str, text: TextIO) -> Iterator[Record]:
    """Yield the records of a strict `read`, one video after another.

    Raises:
        InputError: An entry is not usable, or an id is there twice.
        KeyError: The object "database" is missing.
        ValueError: It is there twice, or the file is not JSON.
    """
    seen: set[str] = set()

    def entries() -> Iterator[tuple[str, Any]]:
        for video_id, entry in members(text, "database", _to_object):
            if video_id in seen:
                raise InputError(Rejection(file, *_twice(video_id, "database.")).line())
            seen.add(video_id)
            yield video_id, entry

    yield from _records(file, entries(), "database.", Reading(strict=True))


def write(records: Sequence[Record], name: str = "") -> str:
    """Return the records in the official format, without unknown fields.

    `name`, of the data set, becomes a key that the official format does not have.
    """
    keys = {"subset": "subset", "duration": "seconds", "duration_frame": "frames"}
    named = {"name": name} if name else {}
    content = {"version": "actionspan 1", **named, "taxonomy": []}
    return json.dumps(content | {"database": entries_of(records, keys)}, indent=1) + "\n"


def entries_of(records: Sequence[Record], keys: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Return an entry for each video, with the known ones of `{key: attribute of a record}`."""
    entries = {}
    for record in records:
        facts = {key: value for key, name in keys.items() if (value := getattr(record, name))}
        listed = [
            {"segment": [start, end], "label": label, **raw.details}
            for (start, end, label), raw in zip(record.parsed(), record.instances, strict=True)
        ]
        entries[record.video_id] = {**facts, "annotations": listed}
    return entries


def parse_object(file: str, text: str) -> dict[str, Any]:
    """Parse a JSON object, noting repeated keys.

    Raises:
        InputError: The text is not JSON, or not an object.
    """
    content = parse_json(file, text, _to_object)
    if not isinstance(content, dict):
        raise InputError(f"{file}: not ground truth or annotations: not a JSON object")
    return content


def read_entries(file: str, entries: dict[str, Any], prefix: str, strict: bool) -> Reading:
    """Read the entries of all videos; key paths are `prefix` and the id of a video."""
    reading = Reading(strict=strict)
    reading.records.extend(_records(file, entries.items(), prefix, reading))
    for video_id in getattr(entries, "again", ()):
        reading.reject(file, *_twice(video_id, prefix))
    return reading


def _to_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    return plain if len(plain) == len(pairs) else _Repeated(pairs)


def _twice(video_id: str, prefix: str) -> tuple[str, str]:
    """Return the row of a repeated id and its fault."""
    return prefix + printable(video_id), "this id is there twice; its first entry counts"


def _records(
    file: str, entries: Iterable[tuple[str, Any]], prefix: str, reading: Reading
) -> Iterator[Record]:
    """Yield the records of usable entries and note the others."""
    strict = reading.strict
    for video_id, entry in entries:
        # a strict message is for people, who count from 1; a rejection has a key path
        row = f"video {video_id!r}" if strict else prefix + printable(video_id)
        problem = text_problem(video_id) if strict else id_problem(video_id)
        if problem := problem or _entry_problem(entry, strict, prefix):
            reading.reject(file, row, problem)
            continue
        record = Record(
            file=file,
            row=row,
            video_id=video_id,
            subset=subset_name(entry.get("subset"), strict) or "",
            seconds=positive(entry.get("duration_second", entry.get("duration"))),
            frames=int(positive(entry.get("duration_frame"))),
            fps=positive(entry.get("fps")),
        )
        for number, item in enumerate(entry.get("annotations", [])):
            where = f"{row}, instance {number + 1}" if strict else f"{row}.annotations[{number}]"
            segment = item.get("segment") if isinstance(item, dict) else None
            if isinstance(segment, list) and len(segment) == 2:
                details = {name: item[name] for name in DETAILS if isinstance(item.get(name), str)}
                record.add(where, segment[0], segment[1], item.get("label"), **details)
            else:
                wanted = 'not of the form {"segment": [start, end], …}'
                wanted = wanted if strict else "no segment [start, end]"
                reading.reject(file, where, wanted, video_id)
        yield record


def _entry_problem(entry: Any, strict: bool, prefix: str) -> str:
    """Return why a video's entry is not usable, or an empty text."""
    if not isinstance(entry, dict):
        return "not an object with annotations"
    if isinstance(entry, _Repeated):
        return f"key {quoted(entry.again[0])} is there twice"
    subset = subset_name(entry.get("subset"), strict)
    if strict and prefix and not isinstance(entry.get("subset"), str):
        return "no 'subset'"
    if subset is None:
        return subset_problem(entry.get("subset"))
    if subset == "testing" and "annotations" not in entry:
        return ""  # the annotations of test videos are secret
    if isinstance(entry.get("annotations"), list):
        return ""
    if strict:
        return "no 'annotations'"
    return "annotations are not a list" if "annotations" in entry else "no list of annotations"
