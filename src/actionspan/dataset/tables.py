"""The canonical tables of a data set: shards, videos.tsv and annotations.json."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal, get_args

from actionspan.errors import InputError
from actionspan.files.storage import read_json, read_tsv, write_json, write_tsv

Subset = Literal["training", "validation", "testing"]
SUBSETS: tuple[Subset, ...] = get_args(Subset)
UNNAMED = "a data set without a name"


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


def write_annotations(path: Path, annotations: list[Annotation], name: str = UNNAMED) -> None:
    """Write annotations in ActivityNet form, with the name of the data set."""
    database = {
        known.video_id: {
            "subset": known.subset,
            "duration": known.duration_seconds,
            "annotations": [
                {"segment": [instance.start, instance.end], "label": instance.label}
                for instance in known.instances
            ],
        }
        for known in annotations
    }
    head = {"version": "actionspan 1", "name": name, "taxonomy": []}
    write_json(path, {**head, "database": database})


def read_name(path: Path) -> str:
    """Return the name of the data set, which annotations.json holds.

    Raises:
        InputError: The file is missing or no JSON object.
    """
    content = read_json(path)
    if not isinstance(content, dict):
        raise InputError(f"{path}: not canonical annotations")
    return str(content.get("name", UNNAMED))


def read_annotations(path: Path) -> list[Annotation]:
    """Read the canonical annotations.json that `write_annotations` wrote.

    Raises:
        InputError: The file is missing or not in that form.
    """
    try:
        return [
            Annotation(
                video_id=video_id,
                subset=entry["subset"],
                duration_seconds=entry["duration"],
                instances=tuple(
                    Instance(start=item["segment"][0], end=item["segment"][1], label=item["label"])
                    for item in entry["annotations"]
                ),
            )
            for video_id, entry in read_json(path)["database"].items()
        ]
    except (KeyError, TypeError, IndexError) as error:
        raise InputError(f"{path}: not canonical annotations: missing {error}") from None
