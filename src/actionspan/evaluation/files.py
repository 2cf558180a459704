"""Ground truth and proposals read from files into arrays by video, and the flags that name them."""

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from actionspan.annotations.formats.records import Reading, Record, subset_name
from actionspan.annotations.formats.registry import read_text, stream_annotation_file
from actionspan.annotations.formats.rows import iterate_video_info
from actionspan.annotations.formats.times import POINT, times_problem, unknown_time
from actionspan.annotations.tables import Annotation, read_annotations
from actionspan.arrays import Float64
from actionspan.errors import InputError
from actionspan.proposals import segments
from actionspan.proposals.segments import Row
from actionspan.storage.scratch import VideoTables
from actionspan.storage.text import read_utf8

ALL_SUBSETS = "all"


@contextmanager
def blaming(*places: Path | str) -> Iterator[None]:
    """Name the files, or the place in one, where the block finds a wrong value."""
    try:
        yield
    except ValueError as error:
        raise InputError(f"{', '.join(map(str, places))}: {error}") from None


def read_ground_truth(
    path: Path, subset: str = "validation", video_info: Path | None = None
) -> VideoTables:
    """Read the instances of one subset: (G, 2) starts and ends in seconds for each video.

    Instances of zero length are kept, as in the official protocol, and so are instances of
    THUMOS14's class Ambiguous.

    Args:
        path: Annotations in any format that `actionspan dataset index` reads.
        subset: Name of the subset, or `"all"`.
        video_info: `video_info_new.csv`, which names the subsets of `anet_anno_action.json`;
            by default the file of that name next to `path`, if there is one.

    Raises:
        InputError: The file has another format, a row cannot be read, or it has no
            such subset.
    """
    fast = _truth_at_once(path, subset)
    if fast is not None:
        return fast
    records = _records_of(path, subset, video_info)
    return VideoTables(((record.video_id, _segments(record)) for record in records), 2)


def read_labelled_truth(
    path: Path, subset: str = "validation", video_info: Path | None = None
) -> dict[str, list[tuple[float, float, str]]]:
    """Read start, end and label of the instances of one subset; see `read_ground_truth`."""
    labelled = {}
    for record in _records_of(path, subset, video_info):
        rows = zip(_segments(record).tolist(), record.instances, strict=True)
        with blaming(f"{path}: video {record.video_id!r}"):
            labelled[record.video_id] = [
                (*times, raw.parsed(record.duration, record.fps)[2]) for times, raw in rows
            ]
    return labelled


def _records_of(path: Path, subset: str, video_info: Path | None) -> Iterator[Record]:
    """Yield the videos of one subset, of which there must be one with an instance."""
    form, records = stream_annotation_file(path)
    if form == "proposals" and path.suffix == ".json":
        raise InputError(f"{path}: proposals or events, which are not ground truth")
    if form == "anet_anno_action" and subset != ALL_SUBSETS:
        records = _name_subsets(records, path, video_info)
    name = subset if subset == ALL_SUBSETS else subset_name(subset, strict=True)
    videos: Counter[str | None] = Counter()
    instances = 0
    for record in records:
        videos[record.subset] += 1
        if any(raw.point for raw in record.instances):
            what = "`actionspan dataset convert --points SECONDS` gives one"
            raise InputError(f"{path}: video {record.video_id!r}: {POINT}; {what}")
        if name in (ALL_SUBSETS, record.subset):
            instances += len(record.instances)
            yield record
    if name != ALL_SUBSETS and not videos[name]:
        raise InputError(
            f"{path}: {without_videos(subset, videos)}"
            f"{'' if any(videos) else f'; give --subset {ALL_SUBSETS}'}"
        )
    if not instances:
        raise InputError(f"{path}: subset {subset!r} has no instance to find")


def without_videos(subset: str, videos: Mapping[str | None, int]) -> str:
    """Return the line for a subset without videos, with the number in each of the others."""
    counts = ", ".join(f"{name!r} ({count})" for name, count in videos.items() if name)
    return f"no video of subset {subset!r}; it has {counts or 'none'}"


def read_frame_rates(path: Path) -> dict[str, float]:
    """Read the frame rate of each video of a table; an empty cell or 0 is treated as missing.

    The table has a column of videos and one of rates, such as `videos.tsv` (`video_id`, `fps`) or
    `thumos14_test_groundtruth.csv` (`video-name`, `frame-rate`).

    Raises:
        InputError: The file is not such a table, or gives a video two rates.
    """
    records = iterate_video_info(str(path), read_text(path), Reading(strict=True))
    return {record.video_id: record.fps for record in records if record.fps}


def read_proposals(path: Path) -> VideoTables:
    """Read an ActivityNet result file: (P, 3) start, end and score for each video, in its order.

    Raises:
        InputError: The file is not in that format, or a row is reversed or not finite.
    """
    fast = _read_at_once(path)
    if fast is not None:
        return fast
    videos = segments.iterate_proposals(path, below_zero=True)
    return VideoTables(((video_id, as_array(rows)) for video_id, rows in videos), 3)


class _Instance(msgspec.Struct, gc=False):
    segment: tuple[float, float]


class _Video(msgspec.Struct):
    subset: str
    annotations: list[_Instance]


class _Database(msgspec.Struct):
    database: dict[str, msgspec.Raw]


class _Proposal(msgspec.Struct, gc=False):
    segment: tuple[float, float]
    score: float


class _Results(msgspec.Struct):
    results: dict[str, msgspec.Raw]


_AT_ONCE = 1 << 28  # bytes of a file that is held in memory


def _bytes_at_once(path: Path) -> bytes:
    """Return a file's text, empty where its strings need more than a look at their bytes."""
    data = path.read_bytes() if path.stat().st_size <= _AT_ONCE else b""
    data.decode()  # the only check of skipped values
    return b"" if b"\\u" in data else data


def _truth_at_once(path: Path, subset: str) -> VideoTables | None:
    """Read ActivityNet's annotations fast; None where that might hide a mistake in them."""
    subsets: dict[str, str | None] = {}

    def tables() -> Iterator[tuple[str, list[tuple[float, float]]]]:
        read = msgspec.json.Decoder(_Video).decode
        for name, raw in videos.items():
            video = read(raw)
            subsets[name] = subset_name(video.subset, strict=True)
            yield name, [each.segment for each in video.annotations]

    # 1. all videos
    try:
        data = _bytes_at_once(path)
        videos = msgspec.json.decode(data, type=_Database).database
        every = VideoTables(tables(), 2)
    except (OSError, ValueError, RecursionError):
        return None
    # 2. no key is repeated, and rows are in order
    counts = (1, len(videos), len(videos), len(every.rows))
    named = zip((b'"database"', b'"subset"', b'"annotations"', b'"segment"'), counts, strict=True)
    once = all(data.count(name) == count for name, count in named)
    start, end = every.rows.T
    ordered = bool(((start >= 0) & (start <= end)).all())
    if not (once and ordered and all(map(str.isprintable, videos))):
        return None
    # 3. the subset
    wanted = subset_name(subset, strict=True)
    chosen = (name for name in every if wanted in (ALL_SUBSETS, subsets[name]))
    found = VideoTables(((name, every[name]) for name in chosen), 2)
    return found if len(found.rows) else None


def _read_at_once(path: Path) -> VideoTables | None:
    """Read a file four times as fast; None where that might hide a mistake in it."""
    try:
        data = _bytes_at_once(path)
        rows = msgspec.json.Decoder(list[_Proposal]).decode
        videos = msgspec.json.decode(data, type=_Results).results
        tables = VideoTables(
            (
                (key, np.array([each for row in rows(raw) for each in (*row.segment, row.score)]))
                for key, raw in videos.items()
            ),
            3,
        )
    except (OSError, ValueError, RecursionError):
        return None
    ordered = (tables.rows[:, 0] <= tables.rows[:, 1]).all()  # msgspec takes finite numbers alone
    return tables if ordered and data.count(b'"results"') == 1 else None


def as_array(rows: Sequence[Row]) -> Float64:
    """Return a video's rows of ActivityNet's result format as (P, 3) start, end and score."""
    values = [(*row["segment"], row["score"]) for row in rows]
    return np.array(values, dtype=np.float64).reshape(-1, 3)


def read_detections(path: Path) -> dict[str, list[tuple[float, float, float, str]]]:
    """Read an ActivityNet detection file: start, end, score and label of each video's detections.

    Raises:
        InputError: The file is in another format, or a row is reversed, not finite or unlabelled.
    """
    detections = {}
    for video_id, rows in segments.iterate_proposals(path, below_zero=True):
        for number, row in enumerate(rows, start=1):
            if not (isinstance(row.get("label"), str) and row["label"].strip()):
                raise InputError(
                    f"{path}: video {video_id!r}, proposal {number}: no label; "
                    "`actionspan proposals detections` gives labels"
                )
        detections[video_id] = [
            (row["segment"][0], row["segment"][1], row["score"], row["label"].strip())
            for row in rows
        ]
    return detections


def _name_subsets(
    records: Iterator[Record], path: Path, video_info: Path | None
) -> Iterator[Record]:
    """Yield the videos with their subsets from video_info_new.csv."""
    table = video_info or path.with_name("video_info_new.csv")
    if video_info is None and not table.exists():
        raise InputError(
            f"{path}: names no subsets: give --video-info video_info_new.csv, "
            f"or --subset {ALL_SUBSETS} to take all its videos"
        )
    named = iterate_video_info(str(table), read_utf8(table), Reading(strict=True))
    subsets = {record.video_id: record.subset for record in named}
    for record in records:
        record.subset = subsets.get(record.video_id, "")
        yield record


def _segments(record: Record) -> Float64:
    """Return one video's (G, 2) instances, naming the first row that is not one."""
    segments = np.empty((len(record.instances), 2))
    for index, raw in enumerate(record.instances):
        start, end = raw.times(record.duration, record.fps)
        if start is None or end is None:
            wrong = unknown_time(raw.start) or unknown_time(raw.end)
            wrong = wrong or (
                f"from {raw.start!r} to {raw.end!r}: two times in seconds are needed, start <= end"
            )
        else:
            # the published truth of THUMOS14 has segments after the ends of their videos
            wrong = times_problem(start, end, may_be_empty=True)
            segments[index] = start, end
        if wrong:
            video = f"video {record.video_id!r}"
            row = f"row {raw.row}: {video}" if raw.row.isdecimal() else raw.row
            raise InputError(f"{record.file}: {row}: {wrong}")
    return segments


Judged = TypeVar("Judged")


def add_inputs(parser: argparse.ArgumentParser, **outputs: str) -> None:
    """Add the flags of a step that judges one method, with the help texts of its outputs."""
    parser.add_argument("--proposals", type=Path, required=True, help="ActivityNet result JSON")
    parser.add_argument("--annotations", type=Path, required=True, help="annotations.json")
    parser.add_argument("--subset", default="validation", help="default: validation")
    parser.add_argument("--method", required=True, help="the method's name, for titles")
    for name, text in {"markdown": "a page to read", **outputs}.items():
        parser.add_argument(f"--out-{name}", type=Path, required=True, help=text)


def judge_inputs(
    arguments: argparse.Namespace,
    judge: Callable[[Sequence[Annotation], Mapping[str, ArrayLike]], Judged],
) -> Judged:
    """Judge the proposals by the videos of the subset.

    Raises:
        InputError: A file is not readable or has a bad row, or the subset has no instance.
    """
    videos = read_subset(arguments.annotations, arguments.subset)
    proposals = read_proposals(arguments.proposals)
    with blaming(arguments.proposals, arguments.annotations):
        return judge(videos, proposals)


def read_subset(annotations: Path, subset: str) -> list[Annotation]:
    """Return the videos of a subset.

    Raises:
        InputError: The file is not readable, or the subset has no instance.
    """
    videos = [video for video in read_annotations(annotations) if video.subset == subset]
    if not any(video.instances for video in videos):
        raise InputError(f"{annotations}: subset {subset!r} has no instance to find")
    return videos


def segments_of(video: Annotation) -> Float64:
    """Return (G, 2) starts and ends of a video's instances in seconds."""
    rows = [(instance.start, instance.end) for instance in video.instances]
    return np.array(rows, dtype=np.float64).reshape(-1, 2)
