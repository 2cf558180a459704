"""The canonical tables of a data set: shards, videos.tsv and annotations.json."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from actionspan.annotations.formats import activitynet
from actionspan.annotations.formats.records import RawInstance, Record
from actionspan.annotations.formats.registry import stream_annotation_file
from actionspan.annotations.formats.rejections import Rejection
from actionspan.errors import InputError
from actionspan.storage.scratch import VideoTables
from actionspan.storage.writing import read_json, read_tsv, write_text, write_tsv


@dataclass(frozen=True, kw_only=True)
class Video:
    """A probed video file.

    `duration_seconds` is frames / fps at a constant frame rate and the span of the time stamps at a
    variable one; `width` and `height` are in pixels as displayed (rotation applied);
    `stated_frames` is the number of frames that the container states, else 0; `variable` is 1
    where frames do not follow each other at `fps`, else 0.
    """

    video_id: str
    path: Path
    fps: float
    frames: int
    duration_seconds: float
    width: int
    height: int
    sha256: str
    stated_frames: int = 0
    variable: int = 0
    subset: str = ""
    error: str = ""

    @property
    def attributes(self) -> dict[str, Any]:
        """What results keep of the video; features are made again where these differ."""
        return {
            "fps": self.fps,
            "stated_frames": max(self.stated_frames, self.frames),
            "duration_seconds": self.duration_seconds,
            "sha256": self.sha256,
        }


@dataclass(frozen=True, kw_only=True)
class Instance:
    """An action instance: start and end in seconds, start < end, its class, who does it and how."""

    start: float
    end: float
    label: str
    subject: str = ""
    modifiers: str = ""


@dataclass(frozen=True, kw_only=True)
class Annotation:
    """The subset, duration and action instances of a video."""

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
    rows = ([getattr(video, name) for name in columns] for video in videos)
    write_tsv(path, columns, (["" if value == Path() else value for value in row] for row in rows))


def read_videos(path: Path) -> list[Video]:
    """Read a shard's table or videos.tsv.

    Raises:
        InputError: The file is missing or a row is not a video.
    """
    types: dict[str, Any] = {field.name: field.type for field in fields(Video)}
    videos = []
    for row, cells in enumerate(read_tsv(path), start=2):
        try:
            videos.append(Video(**{name: types[name](text) for name, text in cells.items()}))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path}: row {row}: not a video: {error}") from None
    return videos


def at_files(videos: list[Video], paths: Iterable[Path]) -> list[Video]:
    """Return videos with the paths of the files that are named by their ids.

    A video in storage is copied to where a job can read it, which may differ from job to job.
    """
    places = {path.stem: path for path in paths}
    return [replace(video, path=places.get(video.video_id, video.path)) for video in videos]


def write_annotations(path: Path, annotations: list[Annotation], name: str = "") -> None:
    """Write annotations in ActivityNet format, with the name of the data set if it has one."""
    records = [
        Record(
            video_id=video.video_id,
            subset=video.subset,
            seconds=video.duration_seconds,
            instances=[RawInstance(**vars(instance)) for instance in video.instances],
        )
        for video in annotations
    ]
    write_text(path, activitynet.write(records, name))


def stated_name(path: Path) -> str:
    """Return the name of the data set in annotations.json, empty if it or its format has none."""
    with suppress(InputError):
        content = read_json(path)
        if isinstance(content, dict):
            return str(content.get("name") or "")
    return ""


def read_name(path: Path) -> str:
    """Return the name of the data set in annotations.json, for captions."""
    return stated_name(path) or "a data set without a name"


def read_annotations(path: Path) -> list[Annotation]:
    """Return what `iterate_annotations` yields."""
    return list(iterate_annotations(path))


def iterate_annotations(path: Path) -> Iterator[Annotation]:
    """Yield annotations that give each video's duration, as the canonical annotations.json does.

    Of such a file there is a single video in memory.

    Raises:
        InputError: The file is missing or in no known format, a row is not an instance, or a
            duration is missing.
    """
    for record in stream_annotation_file(path)[1]:
        if not record.seconds:
            problem = f"video {record.video_id!r}: duration 0 s; a positive duration is needed"
            raise InputError(f"{path}: {problem}")
        yield Annotation(
            video_id=record.video_id,
            subset=record.subset,
            duration_seconds=record.seconds,
            instances=instances_of(record, within=False),
        )


def read_segments(path: Path) -> VideoTables:
    """Return (G, 2) starts and ends in seconds of each video of annotations.

    Raises:
        InputError: See `iterate_annotations`.
    """
    videos = iterate_annotations(path)
    rows = ((each.video_id, [(i.start, i.end) for i in each.instances]) for each in videos)
    return VideoTables(rows, 2)


def read_instances(path: Path) -> dict[str, tuple[Instance, ...]]:
    """Read the instances of each video from annotations of any format; durations may be missing.

    Raises:
        InputError: The file is missing or in no known format, or a row is not an instance.
    """
    return {record.video_id: instances_of(record) for record in stream_annotation_file(path)[1]}


def instances_of(record: Record, *, within: bool = True) -> tuple[Instance, ...]:
    """Return the instances of a record.

    Args:
        record: The annotations of a video.
        within: Refuse instances after the end of the video. An index has left that out; where
            somebody wrote it by hand, a step leaves out that video alone.

    Raises:
        InputError: A row is not an instance.
    """
    seconds = record.duration if within else 0.0
    instances = []
    for raw in record.instances:
        try:
            start, end, label = raw.checked(seconds, record.fps)
        except ValueError as error:
            raise InputError(Rejection(record.file, raw.row, str(error)).line()) from None
        instances.append(Instance(start=start, end=end, label=sys.intern(label), **raw.details))
    return tuple(instances)
