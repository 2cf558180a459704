"""VGG Image Annotator, version 3: a project (JSON) or its export (CSV) with temporal segments.

A segment has two times in seconds and no region of the image; the rest of a project is passed
over. Its label is the value of the first attribute of segments that has one; where the attribute
offers options, the option's text. We write a project.
"""

import csv
import json
from collections.abc import Mapping, Sequence
from typing import Any

from actionspan.annotations.formats.parsing import items, objects, parse_json, peek_json
from actionspan.annotations.formats.records import Reading, Record, media_name, video_id_of
from actionspan.annotations.formats.rows import split_lines
from actionspan.errors import InputError, printable

_KEYS = {"metadata", "view", "file", "attribute"}
_HEADER = "metadata_id,file_list,flags,temporal_coordinates,spatial_coordinates,metadata"
_OF_SEGMENTS = "FILE1_Z2_XY0"  # what an attribute describes: a file, two times, no region
_OF_OPTIONS = (2, 3, 4)  # attributes by check boxes, radio buttons, a list
_VIDEO, _LOCAL = 4, 1  # type and place of a file
_UNSET = ("", "_DEFAULT")
_PROJECT = {
    **{"pid": "__VIA_PROJECT_ID__", "rev": "__VIA_PROJECT_REV_ID__"},
    **{"rev_timestamp": "__VIA_PROJECT_REV_TIMESTAMP__", "pname": "actionspan"},
    **{"creator": "actionspan", "created": 0, "data_format_version": "3.1.2"},
}
_LOOKS = {
    **{"file_content_align": "center", "file_metadata_editor_visible": True},
    **{"spatial_metadata_editor_visible": False, "temporal_segment_metadata_editor_visible": True},
    **{"spatial_region_label_attribute_id": "", "gtimeline_visible_row_count": "4"},
}


def sniff(text: str) -> bool:
    """Return whether the text is a project, or has the header of an export."""
    if text.lstrip().startswith("{"):
        content = peek_json(text) if all(f'"{key}"' in text for key in _KEYS) else None
        return isinstance(content, dict) and content.keys() >= _KEYS
    return any(
        line.lstrip('# "').removeprefix("CSV_HEADER = ").startswith(_HEADER)
        for line in split_lines(text[:100_000])
    )


def read(file: str, text: str, strict: bool = False) -> Reading:
    """Read a project or an export.

    Raises:
        InputError: It is neither.
    """
    is_project = text.lstrip().startswith("{")
    return (_read_project if is_project else _read_export)(file, text, Reading(strict=strict))


def write(records: Sequence[Record]) -> str:
    """Return a project with a view for each video."""
    parsed = [record.parsed() for record in records]
    labels = dict.fromkeys(label for segments in parsed for _, _, label in segments)
    options = {label: str(number) for number, label in enumerate(labels)}
    files, views, metadata = {}, {}, {}
    for number, (record, segments) in enumerate(zip(records, parsed, strict=True), start=1):
        key, name = str(number), media_name(record)
        files[key] = {"fid": key, "fname": name, "type": _VIDEO, "loc": _LOCAL, "src": name}
        views[key] = {"fid_list": [key]}
        for place, (start, end, label) in enumerate(segments, start=1):
            metadata[f"{key}_{place:08d}"] = {
                **{"vid": key, "flg": 0, "z": [start, end], "xy": []},
                "av": {"1": options[label]},
            }
    attribute = {
        **{"aname": "action", "anchor_id": _OF_SEGMENTS, "type": 4, "desc": "What happens"},
        "options": {number: label for label, number in options.items()},
        "default_option_id": "",
    }
    content = {
        "project": _PROJECT | {"vid_list": list(views)},
        "config": {"file": {"loc_prefix": dict.fromkeys("1234", "")}, "ui": _LOOKS},
        "attribute": {"1": attribute},
        **{"file": files, "metadata": metadata, "view": views},
    }
    return json.dumps(content, indent=1) + "\n"


def _read_project(file: str, text: str, reading: Reading) -> Reading:
    content = parse_json(file, text)
    if not isinstance(content, dict) or not isinstance(content.get("metadata"), dict):
        raise InputError(f"{file}: no object 'metadata' as in a project of VIA 3")
    files = objects(content.get("file")).items()
    names = {key: str(each.get("fname") or each.get("src")) for key, each in files}
    records: dict[str, Record | None] = {}  # of views
    for key, view in objects(content.get("view")).items():
        for number in items(view.get("fid_list"))[:1]:  # of files side by side the first counts
            video_id = video_id_of(names.get(str(number), ""))
            records[key] = reading.record_of(file, f"view.{key}", video_id)
    for key, found in content["metadata"].items():
        row = f"metadata.{printable(key)}"
        if not isinstance(found, dict):
            reading.reject(file, row, "not an object with times (z) and attributes (av)")
            continue
        record = records.get(str(found.get("vid")))
        if record is not None:
            _add(row, record, found, content.get("attribute"), reading)
    return reading


def _read_export(file: str, text: str, reading: Reading) -> Reading:
    attributes: Any = {}
    for number, line in enumerate(split_lines(text), start=1):
        row, line = str(number), line.strip()
        if line.startswith("# ATTRIBUTE = "):
            attributes = peek_json(line.removeprefix("# ATTRIBUTE = "))
        if not line or line.startswith(("#", "metadata_id")):
            continue
        try:
            _, files, _, times, regions, values = next(csv.reader([line]))
            parsed = [json.loads(cell) for cell in (files, times, regions, values)]
        except (csv.Error, ValueError, RecursionError):
            reading.reject(file, row, f"not a row of {_HEADER}")
            continue
        name = str(next(iter(items(parsed[0])), ""))
        record = reading.record_of(file, row, video_id_of(name))
        if record is not None:
            found = dict(zip(("z", "xy", "av"), parsed[1:], strict=True))
            _add(row, record, found, attributes, reading)
    return reading


def _add(
    row: str, record: Record, found: Mapping[str, Any], attributes: Any, reading: Reading
) -> None:
    """Add a segment to its record; a still image or a region is not a segment."""
    times = items(found.get("z"))
    if items(found.get("xy")) or len(times) < 2:
        return
    if len(times) != 2:
        what = f"{len(times)} times where a segment has two"
        reading.reject(record.file, row, what, record.video_id)
        return
    record.add(row, times[0], times[1], _label(found.get("av"), objects(attributes)))


def _label(values: Any, attributes: Mapping[str, dict[str, Any]]) -> str:
    for key, value in values.items() if isinstance(values, dict) else ():
        attribute = attributes.get(key, {})
        if attribute.get("anchor_id", _OF_SEGMENTS) != _OF_SEGMENTS or str(value) in _UNSET:
            continue
        options = attribute.get("options")
        if attribute.get("type") in _OF_OPTIONS and isinstance(options, dict):
            # check boxes give several options
            return ", ".join(str(options.get(part, part)) for part in str(value).split(","))
        return str(value)
    return ""
