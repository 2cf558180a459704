"""Label Studio's export as JSON or JSON-MIN, with regions on the timeline of a video.

A range counts frames from 1 and includes its last one; regions of audio have start and end in
seconds. The frame rate is in the task's data (`fps`, as we write it), or follows from a region that
gives the video's number of frames and duration; where there is none, the video's own counts.
A task without an annotation is left out, as its video may have events, also if it has
predictions.

We write tasks to import; proposals of a model become predictions. The rate goes into the labelling
configuration: `<Video name="video" value="$video" frameRate="$fps"/>`; where it is not known it is
24, the one that Label Studio takes. Its ranges are whole frames of that rate.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from actionspan.annotations.formats.parsing import items, parse_json, peek_json
from actionspan.annotations.formats.records import (
    SUFFIXES,
    Reading,
    Record,
    media_name,
    positive,
    subset_name,
    video_id_of,
)
from actionspan.annotations.formats.times import Frame, frames_of, to_number
from actionspan.errors import InputError

USUAL_RATE = 24.0  # frames a second
_RATES = ("fps", "frame_rate", "framerate", "frameRate")
_LABELS = ("timelinelabels", "labels")
_LOCAL = "/data/local-files/"
_UPLOADS = "/data/upload/"
_UPLOADED = re.compile(r"^[0-9a-f]{8}-(?=.)")


def sniff(text: str) -> bool:
    """Return whether the text is a list of tasks, or one task."""
    if text.lstrip().startswith("{") and '"data"' not in text:
        return False
    content = peek_json(text)
    if isinstance(content, dict):
        data, annotations = content.get("data"), content.get("annotations")
        return isinstance(data, dict) and isinstance(annotations, list)
    return isinstance(content, list) and all(isinstance(task, dict) for task in content)


def read(file: str, text: str, strict: bool = False) -> Reading:
    """Read tasks.

    Raises:
        InputError: It is JSON of another format.
    """
    content = parse_json(file, text)
    tasks = [content] if isinstance(content, dict) and "data" in content else content
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise InputError(f"{file}: not ground truth or annotations: not a JSON object, nor tasks")
    reading = Reading(strict=strict)
    for number, task in enumerate(tasks):
        row = f"[{number}]"
        values = _values(file, row, task, reading)
        if values is None:
            continue
        data = task["data"] if isinstance(task.get("data"), dict) else task
        record = reading.record_of(file, row, video_id_of(_media(data)))
        if record is None:
            continue
        if record.row != row:
            what = f"a second task of this video; the first, {record.row}, counts"
            reading.reject(file, row, what)
            continue
        record.subset = subset_name(data.get("subset"), strict) or ""
        record.seconds = positive(data.get("duration"))
        record.frames = int(positive(data.get("frames")))
        record.fps = next((rate for key in _RATES if (rate := positive(data.get(key)))), 0.0)
        for place, value in values:
            frames, seconds = positive(value.get("framesCount")), positive(value.get("duration"))
            if frames and seconds and not record.fps:
                record.fps = frames / seconds
            _add(place, value, record, reading)
    return reading


def write(records: Sequence[Record], predicted: Sequence[Record] = ()) -> str:
    """Return tasks, times in whole frames.

    Args:
        records: What becomes annotations.
        predicted: What becomes predictions, of the same or other videos: each by the name of its
            file as version of the model, with the mean of its scores.
    """
    annotated = {record.video_id: record for record in records}
    guesses = {record.video_id: record for record in predicted}
    tasks = []
    for number, (video_id, record) in enumerate((guesses | annotated).items(), start=1):
        if video_id in guesses:
            record.complete(guesses[video_id])
        fps = record.fps or USUAL_RATE
        known = {"subset": record.subset, "duration": record.seconds, "frames": record.frames}
        data = {"video": f"{_LOCAL}?d={quote(media_name(record))}", "fps": fps}
        data |= {key: value for key, value in known.items() if value}
        task: dict[str, Any] = {"id": number, "data": data}
        if video_id in annotated:
            regions = _regions(record, fps, f"{number}-")
            task["annotations"] = [{"id": number, "result": regions}]
        if guess := guesses.get(video_id):
            regions = _regions(guess, fps, f"{number}-p", "prediction")
            scores = [raw.score for raw in guess.instances if raw.score is not None]
            mean = {"score": fmean(scores)} if scores else {}
            version = "/".join(Path(guess.file).resolve().with_suffix("").parts[-2:])
            prediction = {"model_version": f"actionspan {version}", **mean, "result": regions}
            task["predictions"] = [prediction]
        tasks.append(task)
    return json.dumps(tasks, indent=1) + "\n"


def _regions(
    record: Record, fps: float, prefix: str, origin: str = "manual"
) -> list[dict[str, Any]]:
    """Return a region for each instance; labels of a person have no score."""
    regions = []
    for place, (start, end, label) in enumerate(record.parsed()):
        first, last = frames_of((start, end), fps)  # from 0, Label Studio's from 1
        last -= start == end  # a point has none
        region = {"id": f"{prefix}{place}", "type": "timelinelabels", "origin": origin}
        region |= {"from_name": "videoLabels", "to_name": "video"}
        value = {"ranges": [{"start": first + 1, "end": last + 1}], "timelinelabels": [label]}
        score = record.instances[place].score
        known = {} if score is None or origin == "manual" else {"score": score}
        regions.append(region | {"value": value} | known)
    return regions


def _values(
    file: str, row: str, task: Mapping[str, Any], reading: Reading
) -> list[tuple[str, dict[str, Any]]] | None:
    """Return the place and the value of each region of a task; None: nobody has annotated it."""
    every = task.get("annotations", task.get("completions"))
    if every is None and isinstance(task.get("data"), dict):
        return None  # there may be predictions
    if every is None:  # JSON-MIN
        found = [
            (f"{row}.{key}[{place}]", value)
            for key, values in task.items()
            for place, value in enumerate(items(values))
            if isinstance(value, dict)
        ]
        return found if found or "annotation_id" in task or "annotator" in task else None
    made = [
        (f"{row}.annotations[{place}]", items(each.get("result")))
        for place, each in enumerate(items(every))
        if isinstance(each, dict) and not each.get("was_cancelled")
    ]
    for second, _ in made[1:]:
        what = "a second annotation of this task; the first that is not cancelled counts"
        reading.reject(file, second, what)
    if not made:
        return None
    first, results = made[0]
    return [
        (f"{first}.result[{place}]", result["value"])
        for place, result in enumerate(results)
        if isinstance(result, dict) and isinstance(result.get("value"), dict)
    ]


def _add(row: str, value: Mapping[str, Any], record: Record, reading: Reading) -> None:
    """Add the segments of a region that has labels; other regions are not segments."""
    labels = next((items(value[key]) for key in _LABELS if key in value), [])
    for label in labels if "sequence" not in value else ():
        for start, end in _times(value):
            if start is None or end is None:
                what = "no start and end: ranges in frames, or seconds"
                reading.reject(record.file, row, what, record.video_id)
            else:
                record.add(row, start, end, label)


def _times(value: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the times of a region; a frame that is not a number is None."""
    if "ranges" not in value:
        yield value.get("start"), value.get("end")
    for found in items(value.get("ranges")):
        ends = found if isinstance(found, dict) else {}
        first, last = to_number(ends.get("start")), to_number(ends.get("end"))
        yield (None if first is None else Frame(first - 1)), (None if last is None else Frame(last))


def _media(data: Mapping[str, Any]) -> str:
    """Return the video of a task: its key "video", or the first that names a media file."""
    texts = [data["video"]] if "video" in data else list(data.values())
    for text in texts:
        if not isinstance(text, str):
            continue
        if _LOCAL in text or _UPLOADS in text:  # perhaps with the server before it
            text = text[text.find("/data/") :]
        if text.startswith(_LOCAL):
            text = parse_qs(urlsplit(text).query).get("d", [""])[0]
        elif text.startswith(_UPLOADS):
            text = _UPLOADED.sub("", unquote(text.rpartition("/")[2]), count=1)
        if "video" in data or any(text.lower().endswith(suffix) for suffix in SUFFIXES):
            return text
    return ""
