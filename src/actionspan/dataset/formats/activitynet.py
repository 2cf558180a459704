"""ActivityNet annotations: the official form with a "database", and `anet_anno_action.json`."""

import json
from typing import Any

from actionspan.dataset.formats.records import (
    RawInstance,
    Reading,
    Record,
    canonical_subset,
    id_problem,
    positive,
    quoted,
    subset_problem,
)
from actionspan.errors import InputError, printable


class _Object(dict[str, Any]):
    """A JSON object that keeps the first value of each key and remembers the repeated ones."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__()
        self.repeated: list[str] = []
        for key, value in pairs:
            if key in self:
                self.repeated.append(key)
            else:
                self[key] = value


def read_json_records(file: str, text: str, form: str) -> Reading:
    """Read either JSON form; each video is one entry under its id.

    Args:
        file: The file's name, for messages.
        text: Its content.
        form: `activitynet`, `anet_anno_action` or `auto`.

    Raises:
        InputError: The text is not JSON or of neither form.
    """
    content = _parse(file, text)
    if form == "auto":
        form = "activitynet" if "database" in content else "anet_anno_action"
    if form == "activitynet":
        if not isinstance(content.get("database"), _Object):
            raise InputError(f'{file}: no object "database" as in ActivityNet annotations')
        return _read_entries(file, content["database"], "database.", "duration")
    if content and not any(
        isinstance(entry, dict) and "annotations" in entry for entry in content.values()
    ):
        raise InputError(
            f'{file}: neither ActivityNet annotations (an object "database")'
            " nor anet_anno_action.json (an object with annotations for each video)"
        )
    return _read_entries(file, content, "", "duration_second")


def _parse(file: str, text: str) -> _Object:
    try:
        content = json.loads(text, object_pairs_hook=_Object)
    except json.JSONDecodeError as error:
        raise InputError(f"{file}: line {error.lineno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise InputError(f"{file}: not annotations: nested too deeply") from None
    except ValueError as error:
        raise InputError(f"{file}: not JSON: {error}") from None
    if not isinstance(content, _Object):
        raise InputError(f"{file}: a JSON object is wanted, not a list")
    return content


def _read_entries(file: str, entries: _Object, prefix: str, duration_key: str) -> Reading:
    reading = Reading()
    for video_id, entry in entries.items():
        row = prefix + printable(video_id)
        if problem := id_problem(video_id) or _entry_problem(entry):
            reading.reject(file, row, problem)
            continue
        subset = canonical_subset(entry.get("subset"))
        assert subset is not None
        record = Record(
            file=file,
            row=row,
            video_id=video_id,
            subset=subset,
            seconds=positive(entry.get(duration_key, entry.get("duration"))),
            frames=int(positive(entry.get("duration_frame"))),
        )
        for number, item in enumerate(entry.get("annotations", [])):
            where = f"{row}.annotations[{number}]"
            segment = item.get("segment") if isinstance(item, dict) else None
            if not isinstance(segment, list) or len(segment) != 2:
                reading.reject(file, where, "no segment [start, end]")
                continue
            record.instances.append(
                RawInstance(row=where, start=segment[0], end=segment[1], label=item.get("label"))
            )
        reading.records.append(record)
    for video_id in entries.repeated:
        row = prefix + printable(video_id)
        reading.reject(file, row, "this id is there twice; its first entry counts")
    return reading


def _entry_problem(entry: Any) -> str:
    """Return why a video's entry is unusable as a whole, or an empty text."""
    if not isinstance(entry, _Object):
        return "not an object with annotations"
    if entry.repeated:
        return f"key {quoted(entry.repeated[0])} is there twice"
    subset = canonical_subset(entry.get("subset"))
    if subset is None:
        return subset_problem(entry.get("subset"))
    if "annotations" not in entry and subset != "testing":
        return "no list of annotations"
    if not isinstance(entry.get("annotations", []), list):
        return "annotations are not a list"
    return ""
