"""Probed videos and annotation records become the canonical tables: each row is checked here.

An instance must start before it ends and lie inside its video (`times_problem`). One that ends at
most `overshoot_seconds` after its video is cut.
"""

import hashlib
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

from actionspan.annotations.formats.records import SUBSETS, RawInstance, Reading, Record, quoted
from actionspan.annotations.formats.registry import (
    AnnotationFormat,
    read_annotation_file,
    read_text,
)
from actionspan.annotations.formats.rejections import OnBadInput, Rejection
from actionspan.annotations.formats.rows import iterate_video_info
from actionspan.annotations.formats.times import OVERSHOOT
from actionspan.annotations.names import VIDEO_SUFFIXES, other_names
from actionspan.annotations.tables import Annotation, Instance, Video
from actionspan.errors import counted
from actionspan.settings import Checked, option


@dataclass(frozen=True, kw_only=True)
class IndexSettings(Checked):
    """How annotations are read and what happens to bad input."""

    format: AnnotationFormat = option("auto", "format of the annotations")
    on_bad_input: OnBadInput = option(
        "skip", "skip: broken videos and rows go to rejected.tsv; fail: they end the run"
    )
    overshoot_seconds: float = option(
        OVERSHOOT, "a segment that ends at most this after its video is cut to it", least=0
    )
    point_seconds: float = option(
        0.0, "length of events that are points in time; 0: they are rejected", least=0
    )
    ambiguous: bool = option(True, "keep the instances of THUMOS14's class Ambiguous")
    validation_fraction: float = option(
        0.25, "part of the videos held out, where the annotations name no subset", least=0, most=1
    )


@dataclass(frozen=True, kw_only=True)
class Index:
    """The data set: good videos sorted by id, an annotation for each, and the rejected rows."""

    videos: list[Video]
    annotations: list[Annotation]
    annotated: int  # videos that a record of the annotations names
    rejections: list[Rejection]


def read_annotations(
    paths: Sequence[Path], video_info: Path | None, settings: IndexSettings
) -> Reading:
    """Read annotation files and complete them from a table of videos, if there is one.

    Raises:
        InputError: Nothing in a file is usable.
    """
    reading = Reading()
    for path in paths:
        points = settings.point_seconds
        part = read_annotation_file(path, settings.format, settings.ambiguous, points=points)
        reading.records += part.records
        reading.rejections += part.rejections
    if video_info is None:
        return reading
    info = iterate_video_info(str(video_info), read_text(video_info), reading)
    completed = {record.video_id: record for record in info}
    names = Names(completed)
    for record in reading.records:
        name = names.find(record.video_id)
        if name is not None:
            record.complete(completed[name])
    return reading


def index_videos(probed: Sequence[Video], reading: Reading, settings: IndexSettings) -> Index:
    """Join probed videos, which may have an `error`, with their annotations.

    Videos that no record names have no instance and are in the subset testing, and so are videos
    with every row rejected. A record without a subset is put in training or validation by the
    hash of its video's id.
    """
    videos = {video.video_id: video for video in sorted(probed, key=lambda v: v.video_id)}
    broken = [video for video in videos.values() if video.error]
    rejections = [Rejection(str(video.path), "", video.error) for video in broken]
    # the record of each video
    names = Names(videos)
    records: dict[str, Record] = {}
    late = []
    for record in reading.records:
        video_id = names.find(record.video_id)
        if video_id is None:
            reason = f"no video file has the id {quoted(record.video_id, 100)}"
            reason += f" ({counted(len(record.instances), 'instance')} left out)"
            late.append(Rejection(record.file, record.row, reason))
        elif video_id in records:
            late.append(_second(record, records[video_id], video_id))
        else:
            records[video_id] = record
    good = {name: video for name, video in videos.items() if not video.error}
    return _index(good, records, rejections, reading.rejections + late, settings)


def index_annotations(reading: Reading, settings: IndexSettings) -> Index:
    """Make the tables from annotations alone, for features that were extracted elsewhere.

    Durations come from the annotations or the table of videos; `path` and `sha256` stay empty, and
    `frames` and `fps` are 0 where they are unknown.
    """
    videos: dict[str, Video] = {}
    records: dict[str, Record] = {}
    late = []
    for record in reading.records:
        seconds = record.duration
        if record.video_id in records:
            late.append(_second(record, records[record.video_id], record.video_id))
        elif not seconds:
            reason = f"no duration of {quoted(record.video_id, 100)}: give it here, in a table of"
            late.append(Rejection(record.file, record.row, f"{reason} videos, or as a video file"))
        else:
            records[record.video_id] = record
            videos[record.video_id] = Video(
                video_id=record.video_id,
                path=Path(),
                fps=record.frames / seconds if record.frames else record.fps,
                frames=record.frames,
                duration_seconds=seconds,
                width=0,
                height=0,
                sha256="",
            )
    return _index(dict(sorted(videos.items())), records, [], reading.rejections + late, settings)


def check_instance(
    raw: RawInstance, duration: float, overshoot: float = OVERSHOOT, fps: float = 0.0
) -> tuple[Instance | None, str]:
    """Check an annotated segment against its video; return the instance, or None and the reason.

    Args:
        raw: The segment in the file.
        duration: The video's duration in seconds; 0: not known.
        overshoot: Seconds by which it may end after the video; the rest is cut off.
        fps: The video's frames a second, for times that count frames; 0: not known.
    """
    try:
        start, end, label = raw.checked(duration, fps, overshoot)
    except ValueError as error:
        return None, str(error)
    end = min(end, duration) if duration else end
    return Instance(start=max(start, 0.0), end=end, label=label, **raw.details), ""


class Names:
    """Finds the id of a video by the name that an annotation gives it."""

    def __init__(self, ids: Mapping[str, object]) -> None:
        self.ids = ids
        ordered = sorted(ids, reverse=True)
        self.composed = {unicodedata.normalize("NFC", video_id): video_id for video_id in ordered}

    def find(self, name: str) -> str | None:
        """Return the id that a name means, None for a name of no video.

        Annotations may leave out or add ActivityNet's `v_`, may name the file with its suffix, and
        may be composed differently (Unicode NFC) from names that macOS wrote.
        """
        if name in self.ids:
            return name
        lower = name.lower()
        names = [name, *(name[: -len(end)] for end in VIDEO_SUFFIXES if lower.endswith(end))]
        names = [unicodedata.normalize("NFC", each) for each in names]
        names += [other for each in names for other in other_names(each)]
        return next((self.composed[each] for each in names if each in self.composed), None)


def _index(
    videos: Mapping[str, Video],
    records: Mapping[str, Record],
    files: list[Rejection],
    rows: list[Rejection],
    settings: IndexSettings,
) -> Index:
    """Check the instances of each video; reject `files`, and `rows` and instances by place."""
    from actionspan.dataset.video_facts import count_own_frames

    # 1. the sound instances of each video, and the subsets that the annotations name
    instances: dict[str, list[Instance]] = {video_id: [] for video_id in videos}
    subsets: dict[str, str] = {}
    bad = []
    lost = {video_id for row in rows for video_id in row.video_ids}
    for video_id, video in videos.items():
        record = records.get(video_id)
        if record is None:
            subsets[video_id] = "testing"
            continue
        # a tool may count frames at a rate of its own
        count_own_frames(record, video)
        times = video.duration_seconds, settings.overshoot_seconds, record.fps or video.fps
        for raw in record.instances:
            instance, reason = check_instance(raw, *times)
            if instance:
                instances[video_id].append(instance)
            else:
                reason = f"{reason} (video {quoted(video_id, 100)})"
                bad.append(Rejection(record.file, raw.row, reason))
        if not instances[video_id] and (record.instances or record.video_id in lost):
            # it would be learned as a video in which nothing happens
            subsets[video_id] = "testing"
            if record.subset != "testing":
                reason = f"no row of video {quoted(video_id, 100)} is left; nothing learns from it"
                bad.append(Rejection(record.file, record.row, reason))
        elif record.subset:
            subsets[video_id] = record.subset
    # 2. the subsets of the others
    undecided = {name: bool(found) for name, found in instances.items() if name not in subsets}
    named = {subset for name, subset in subsets.items() if instances[name]}
    subsets |= split_subsets(undecided, settings.validation_fraction, named)
    # 3. the tables
    annotations = [
        Annotation(
            video_id=video_id,
            subset=subsets[video_id],
            duration_seconds=video.duration_seconds,
            instances=tuple(sorted(instances[video_id], key=attrgetter("start", "end", "label"))),
        )
        for video_id, video in videos.items()
    ]
    return Index(
        videos=[replace(videos[known.video_id], subset=known.subset) for known in annotations],
        annotations=annotations,
        annotated=len(videos.keys() & records.keys()),
        rejections=files + _in_order(rows + bad),
    )


def _second(record: Record, first: Record, video_id: str) -> Rejection:
    place = first.row if first.file == record.file else f"{first.file} {first.row}"
    reason = f"a second entry of video {quoted(video_id, 100)}; the first, {place}, counts"
    return Rejection(record.file, record.row, reason)


def _in_order(rejections: list[Rejection]) -> list[Rejection]:
    """Sort by file, and by line number where rows are lines."""
    files = {bad.file: place for place, bad in reversed(list(enumerate(rejections)))}

    def place(bad: Rejection) -> tuple[int, int]:
        return files[bad.file], int(bad.row) if bad.row.isdecimal() else 0

    return sorted(rejections, key=place)


def describe(index: Index) -> str:
    """Return a line about the content of the data set."""
    subsets = Counter(video.subset for video in index.videos)
    labels = [instance.label for known in index.annotations for instance in known.instances]
    hours = sum(video.duration_seconds for video in index.videos) / 3600
    parts = ", ".join(f"{subsets[name]} {name}" for name in SUBSETS)
    return (
        f"{counted(len(index.videos), 'video')} ({parts}), {hours:.2f} hours, "
        f"{counted(len(labels), 'instance')} of {counted(len(set(labels)), 'class')}, "
        f"{len(index.rejections)} rejected"
    )


def split_subsets(
    videos: Mapping[str, bool], validation_fraction: float, named: Collection[str] = ()
) -> dict[str, str]:
    """Put each video into training or validation by the hash of its id.

    Other videos have no influence, except that neither subset lacks a video with an action: if one
    would, it takes the video with the nearest hash.

    Args:
        videos: Whether something happens in each, by id.
        validation_fraction: The part held out; with 0 and 1 a subset stays empty.
        named: Subsets in which other videos are, by the annotations.

    Returns:
        The subset of each video by id.
    """
    bar = validation_fraction * 2**64
    hashes = {name: hashlib.sha256(b"subset " + name.encode()).digest() for name in videos}
    places = {name: int.from_bytes(sha256[:8], "big") for name, sha256 in hashes.items()}
    subsets = {name: "validation" if place < bar else "training" for name, place in places.items()}
    active = sorted((name for name in videos if videos[name]), key=places.__getitem__)
    if 0 < validation_fraction < 1 and len(active) > 1:
        held_out = {subsets[name] for name in active} | set(named)
        if "validation" not in held_out:
            subsets[active[0]] = "validation"
        if "training" not in held_out:
            subsets[active[-1]] = "training"
    return subsets
