"""FiftyOne's temporal detections: labels.json of a FiftyOneTemporalDetectionDataset.

A detection has `timestamps` in seconds, which we write, or as `support` its first and last frame,
counted from 1. A label is a text or a number in `classes`. A video whose labels are null is one
that nobody has annotated, and is left out.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from actionspan.annotations.formats.parsing import items, parse_json, peek_json
from actionspan.annotations.formats.records import Reading, Record, media_name, video_id_of
from actionspan.annotations.formats.times import Frame, to_number
from actionspan.errors import InputError, printable
from actionspan_editors import details_of


def sniff(text: str) -> bool:
    """Return whether the text is an object of `classes` and `labels`."""
    content = peek_json(text) if '"labels"' in text and '"classes"' in text else None
    return isinstance(content, dict) and isinstance(content.get("labels"), dict)


def read(file: str, text: str, strict: bool = False) -> Reading:
    """Return the videos of a data set.

    Raises:
        InputError: It is JSON of another format.
    """
    content = parse_json(file, text)
    labels = content.get("labels") if isinstance(content, dict) else None
    if not isinstance(labels, dict):
        raise InputError(f"{file}: no object 'labels' as in FiftyOne's labels.json")
    reading = Reading(strict=strict)
    classes = items(content.get("classes"))
    for key, detections in labels.items():
        row = f"labels.{printable(key)}"
        if detections is None:
            continue
        video_id = video_id_of(key)
        if not isinstance(detections, list):
            reading.reject(file, row, "not a list of detections", video_id)
            continue
        record = reading.record_of(file, row, video_id)
        if record is not None:
            for place, detection in enumerate(detections):
                _add(f"{row}[{place}]", detection, record, classes, reading)
    return reading


def write(records: Sequence[Record]) -> str:
    """Return the detections of videos, times in seconds."""
    labels: dict[str, list[dict[str, Any]]] = {}
    classes: dict[str, None] = {}
    for record in records:
        detections = labels[video_id_of(media_name(record))] = []  # FiftyOne looks for the file
        for raw, (start, end, label) in zip(record.instances, record.parsed(), strict=True):
            classes[label] = None
            detection: dict[str, Any] = {"label": label, "timestamps": [start, end]}
            detection |= {} if raw.score is None else {"confidence": raw.score}
            detections.append(detection | ({"attributes": raw.details} if raw.details else {}))
    # FiftyOne takes a label that is a text as it is
    return json.dumps({"classes": list(classes), "labels": labels}, indent=1) + "\n"


def _add(row: str, detection: Any, record: Record, classes: list[Any], reading: Reading) -> None:
    found: Mapping[str, Any] = detection if isinstance(detection, dict) else {}
    frames = [to_number(number) for number in items(found.get("support"))]
    times: list[Any] = items(found.get("timestamps"))
    if len(frames) == 2:
        first, last = (number or 0 for number in frames)
        times = [Frame(first - 1), Frame(last)] if 1 <= first <= last else []
    if len(times) != 2:
        what = "no 'support' [first, last] from frame 1 on, nor 'timestamps' [start, end]"
        reading.reject(record.file, row, what, record.video_id)
        return
    label = found.get("label")
    if isinstance(label, int) and 0 <= label < len(classes):
        label = classes[label]
    score, details = to_number(found.get("confidence")), details_of(found.get("attributes"))
    record.add(row, times[0], times[1], label, **details, score=score)
