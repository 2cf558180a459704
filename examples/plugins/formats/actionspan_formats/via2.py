"""VGG Image Annotator, version 2: a project or annotations (JSON) or their export (CSV).

It annotates pictures, so a video is there as its frames, `name_000123.jpg`: the number at the end
is the frame's, from 0, and what comes before it is the video. Attributes of a picture and of its
regions are labels; neighbouring pictures with the same label are one instance. Read only.
"""

import csv
import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import PurePath
from typing import Any

from actionspan.annotations.formats.parsing import items, objects, parse_json, peek_json
from actionspan.annotations.formats.records import RawInstance, Reading, quoted, video_id_of
from actionspan.annotations.formats.rows import split_lines
from actionspan.annotations.formats.times import Frame
from actionspan.errors import InputError, printable

_COLUMNS = "filename,file_size,file_attributes,region_count,region_id,region_shape_attributes"
_NUMBER = re.compile(r"(?<!\d)\d{1,15}$", re.ASCII)
_IMAGES = "_via_img_metadata"

_Picture = tuple[str, str, list[Any]]  # row, file name, objects of attributes


def sniff(text: str) -> bool:
    """Return whether the text is a project, annotations, or the export with its header."""
    if not text.lstrip().startswith("{"):
        return text.lstrip('"# \r\n').startswith(_COLUMNS)
    if _IMAGES not in text and '"regions"' not in text:
        return False
    content = peek_json(text)
    if not isinstance(content, dict) or _IMAGES in content:
        return isinstance(content, dict)
    pictures = objects(content)
    named = [{"filename", "regions"} <= picture.keys() for picture in pictures.values()]
    return bool(named) and all(named) and len(pictures) == len(content)


def read(file: str, text: str, strict: bool = False) -> Reading:
    """Read pictures as frames of videos.

    Raises:
        InputError: It is JSON of another format.
    """
    reading = Reading(strict=strict)
    is_json = text.lstrip().startswith("{")
    pictures = (_of_json if is_json else _of_table)(file, text, reading)
    videos: dict[str, dict[int, tuple[str, list[str]]]] = {}
    for row, name, attributes in pictures:
        stem = PurePath(name).stem
        number = _NUMBER.search(stem)
        before = stem[: number.start()].rstrip(" ._-") if number else ""
        if number is None or not before:
            what = f"picture {quoted(name)} is no frame of a video: name it VIDEO_000123.jpg"
            reading.reject(file, row, what)
            continue
        record = reading.record_of(file, row, video_id_of(before))
        if record is None:
            continue
        labels = [label for each in attributes for label in _labels(each)]
        frames = videos.setdefault(record.video_id, {})
        _, known = frames.setdefault(int(number[0]), (row, []))
        known += [label for label in dict.fromkeys(labels) if label not in known]
    for record in reading.records:
        record.instances = _runs(videos[record.video_id])
    return reading


def _of_json(file: str, text: str, reading: Reading) -> Iterator[_Picture]:
    content = parse_json(file, text)
    pictures = content.get(_IMAGES, content) if isinstance(content, dict) else None
    if not isinstance(pictures, dict):
        raise InputError(f"{file}: no object {_IMAGES!r} as in a project of VIA 2")
    for key, picture in pictures.items():
        row = printable(key)
        if not isinstance(picture, dict) or not isinstance(picture.get("filename"), str):
            reading.reject(file, row, "no 'filename'")
            continue
        regions = picture.get("regions")  # a list, or an object in old files
        parts = list(regions.values()) if isinstance(regions, dict) else items(regions)
        of_regions = [part.get("region_attributes") for part in parts if isinstance(part, dict)]
        yield row, picture["filename"], [picture.get("file_attributes"), *of_regions]


def _of_table(file: str, text: str, reading: Reading) -> Iterator[_Picture]:
    for number, line in enumerate(split_lines(text), start=1):
        row, line = str(number), line.strip()
        if not line or line.lstrip('"# ').startswith("filename,"):
            continue
        try:
            name, _, of_file, _, _, _, of_region = next(csv.reader([line]))
            yield row, name, [json.loads(of_file or "{}"), json.loads(of_region or "{}")]
        except (csv.Error, ValueError, RecursionError):
            reading.reject(file, row, f"not a row of {_COLUMNS},region_attributes")


def _labels(attributes: Any) -> Iterator[str]:
    """Yield the values of attributes; of check boxes those that are ticked."""
    for value in attributes.values() if isinstance(attributes, dict) else ():
        if isinstance(value, dict):
            yield from (key for key, ticked in value.items() if ticked)
        elif isinstance(value, str) and value.strip():
            yield value.strip()


def _runs(frames: dict[int, tuple[str, list[str]]]) -> list[RawInstance]:
    """Return an instance for each run of pictures with the same label.

    Pictures may be every k-th frame, k being the least distance of two: neighbours are at most 2 k
    apart, and a run lasts to the next picture.
    """
    order = sorted(frames)
    step = min((after - before for before, after in pairwise(order)), default=1)
    instances = []
    open_runs: dict[str, tuple[int, str]] = {}
    for place, number in enumerate(order):
        row, labels = frames[number]
        for label in labels:
            open_runs.setdefault(label, (number, row))
        following = order[place + 1] if place + 1 < len(order) else None
        near = following is not None and following - number <= 2 * step
        lasting = frames[following][1] if near and following is not None else []
        for label in [label for label in open_runs if label not in lasting]:
            start, row = open_runs.pop(label)
            end = number + step
            instances.append(RawInstance(row=row, start=Frame(start), end=Frame(end), label=label))
    return instances
