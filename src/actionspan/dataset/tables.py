"""The canonical tables of a data set: shards, videos.tsv and annotations.json."""

from dataclasses import dataclass, fields
from pathlib import Path

from actionspan.dataset.formats import activitynet
from actionspan.dataset.formats.records import RawInstance, Record
from actionspan.dataset.formats.registry import read_annotation_file
from actionspan.dataset.rejections import Rejection
from actionspan.errors import InputError
from actionspan.files.storage import read_json, read_tsv, write_text, write_tsv


@dataclass(frozen=True, kw_only=True)
class Video:
    """One probed video file.

    `duration_seconds` is frames / fps for constant frame rates and the span of the time stamps
    for variable ones; `width` and `height` are in pixels as displayed (rotation applied).
    """

    video_id: str
    path: Path
    fps: float
    frames: int
    duration_seconds: float
    width: int
    height: int
    sha256: str
    subset: str = ""
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Instance:
    """One action instance: start and end in seconds, start < end, and its class."""

    start: float
    end: float
    label: str


@dataclass(frozen=True, kw_only=True)
class Annotation:
    """What is known of one video: its subset, duration and action instances."""

    video_id: str
    subset: str
    duration_seconds: float
    instances: tuple[Instance, ...] = ()


SHARD_COLUMNS = tuple(field.name for field in fields(Video) if field.name != "subset")
VIDEO_COLUMNS = tuple(field.name for field in fields(Video) if field.name != "error")


def write_videos(path: Path, videos: list[Video], columns: tuple[str, ...]) -> None:
    """Write videos as a table: `SHARD_COLUMNS` for a shard, `VIDEO_COLUMNS` for videos.tsv.

    The path of a video that has no file, `Path()`, is an empty cell.
    """

    def cell(video: Video, name: str) -> object:
        value = getattr(video, name)
        return "" if value == Path() else value

    write_tsv(path, columns, ([cell(video, name) for name in columns] for video in videos))


def read_videos(path: Path) -> list[Video]:
    """Read a shard list or videos.tsv.

    Raises:
        InputError: The file is missing or a row is not a video.
    """
    convert = {field.name: field.type for field in fields(Video)}
    videos = []
    for row, values in enumerate(read_tsv(path), start=2):
        try:
            videos.append(Video(**{key: convert[key](text) for key, text in values.items()}))  # type: ignore[operator]
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path}: row {row}: not a video: {error}") from None
    return videos


def write_annotations(path: Path, annotations: list[Annotation], name: str = "") -> None:
    """Write annotations in ActivityNet form, with the name of the data set if it has one."""
    records = [
        Record(
            video_id=known.video_id,
            subset=known.subset,
            seconds=known.duration_seconds,
            instances=[RawInstance(**vars(instance)) for instance in known.instances],
        )
        for known in annotations
    ]
    write_text(path, activitynet.write(records, name))


def read_name(path: Path) -> str:
    """Return the name of the data set in annotations.json; other forms of annotations have none."""
    try:
        content = read_json(path)
    except InputError:
        content = None
    name = content.get("name") if isinstance(content, dict) else None
    return str(name or "a data set without a name")


def read_annotations(path: Path) -> list[Annotation]:
    """Read the canonical annotations.json, or any annotations that give each video's duration.

    Raises:
        InputError: The file is missing, in no known form, or a row or a duration is not there.
    """
    records = read_annotation_file(path, strict=True).records
    for record in records:
        if not record.seconds:
            video = f"video {record.video_id!r}"
            raise InputError(f"{path}: {video}: duration 0 s; a positive one is needed")
    return [
        Annotation(
            video_id=record.video_id,
            subset=record.subset,
            duration_seconds=record.seconds,
            instances=_instances(record),
        )
        for record in records
    ]


def read_instances(path: Path) -> dict[str, tuple[Instance, ...]]:
    """Read the instances of each video from annotations of any form, which need no durations.

    Raises:
        InputError: The file is missing, in no known form, or a row is not an instance.
    """
    records = read_annotation_file(path, strict=True).records
    return {record.video_id: _instances(record) for record in records}


def _instances(record: Record) -> tuple[Instance, ...]:
    instances = []
    for raw in record.instances:
        try:
            start, end, label = raw.parsed()
        except ValueError as error:
            raise InputError(Rejection(record.file, raw.row, str(error)).line()) from None
        instances.append(Instance(start=start, end=end, label=label))
    return tuple(instances)
