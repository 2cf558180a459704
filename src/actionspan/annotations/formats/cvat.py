"""CVAT's XML of video tasks, version 1.1: tracks, and tags of frames. Read only.

An instance is a stretch of frames in which a track is not outside the image, or which have the
same tag; its label is the track's or the tag's. The video is the `source` of the task. The file
gives no frame rate, unless its meta has `fps`: then the video's own counts.
"""

import re
from xml.etree.ElementTree import Element

from actionspan.annotations.formats.parsing import parse_xml, root_name
from actionspan.annotations.formats.records import (
    Reading,
    Record,
    id_problem,
    positive,
    video_id_of,
)
from actionspan.annotations.formats.times import Frame, to_number
from actionspan.errors import InputError

_STEP = re.compile(r"step\s*=\s*(\d{1,9})", re.ASCII)
_SHAPES = {"box", "polygon", "polyline", "points", "ellipse", "cuboid", "mask", "skeleton"}


class _Task:
    """A video of the file: its record, and how many frames lie between annotated ones."""

    def __init__(self, file: str, facts: Element, meta: Element) -> None:
        named = facts.findtext("source") or meta.findtext("source") or facts.findtext("name")
        video_id = video_id_of(named or "")
        self.problem = id_problem(video_id)
        self.record = Record(file=file, row="meta", video_id=video_id)
        self.record.fps = positive(facts.findtext("fps") or meta.findtext("fps"))
        step = _STEP.search(facts.findtext("frame_filter") or "")
        self.step = max(int(step[1]), 1) if step else 1


def sniff(text: str) -> bool:
    """Return whether the text is XML with the root `annotations`."""
    return root_name(text) == "annotations"


def read(file: str, text: str, strict: bool = False) -> Reading:
    """Read the tracks and tags of a task, of a job, or of the tasks of a project.

    Raises:
        InputError: It is not XML, or has no meta.
    """
    root = parse_xml(file, text)
    reading = Reading(strict=strict)
    meta = root.find("meta")
    if meta is None:
        raise InputError(f"{file}: no element 'meta' that names the video, as in CVAT's XML")
    facts = [*meta.findall(".//task"), *meta.findall("job")] or [meta]
    tasks = {each.findtext("id") or "": _Task(file, each, meta) for each in facts}
    first = next(iter(tasks.values()))
    records: dict[str, Record] = {}  # tasks of one video may be parts of it
    for task in tasks.values():
        if task.problem:
            reading.reject(file, "meta", f"{task.problem}: a task that names no source")
        else:
            task.record = records.setdefault(task.record.video_id, task.record)
    for number, track in enumerate(root.findall("track")):
        row = f"track {track.get('id', number)}"
        task = tasks.get(track.get("task_id", ""), first)
        shapes = [shape for shape in track if shape.tag in _SHAPES]
        # where it has its place, and whether that is outside the image
        marks = [(to_number(each.get("frame")), each.get("outside") == "1") for each in shapes]
        _add(row, track.get("label"), marks, task, reading)
    tags: dict[tuple[str, str], list[float | None]] = {}
    for parent in [root, *root.findall("image")]:
        for tag in parent.findall("tag"):
            task_id = tag.get("task_id", parent.get("task_id", ""))
            frame = to_number(tag.get("frame", parent.get("id")))
            tags.setdefault((task_id, tag.get("label", "")), []).append(frame)
    for (task_id, label), frames in tags.items():
        task = tasks.get(task_id, first)
        known = {frame for frame in frames if frame is not None}
        ends = {frame + task.step for frame in known} - known
        marks = [(frame, False) for frame in frames] + [(frame, True) for frame in ends]
        _add(f"tag {label}", label, marks, task, reading)
    reading.records = list(records.values())
    return reading


def _add(
    row: str,
    label: str | None,
    marks: list[tuple[float | None, bool]],
    task: _Task,
    reading: Reading,
) -> None:
    """Add an instance for each stretch from a frame inside the image to the next outside."""
    if task.problem:
        return
    start = last = None
    known = [(frame, outside) for frame, outside in marks if frame is not None]
    for frame, outside in sorted(known):
        if outside and start is not None:
            task.record.add(row, Frame(start), Frame(frame), label)
            start = None
        elif not outside:
            start = frame if start is None else start
        last = frame
    if start is not None and last is not None:
        task.record.add(row, Frame(start), Frame(last + task.step), label)
    if len(known) < len(marks):
        reading.reject(task.record.file, row, "a frame that is not a number", task.record.video_id)
