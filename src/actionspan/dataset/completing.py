"""What annotations leave out about their videos, from the video files."""

from collections.abc import Mapping
from pathlib import Path

from actionspan.dataset.formats.records import Reading, Record
from actionspan.dataset.formats.registry import stream_annotation_file
from actionspan.dataset.formats.rejections import Rejection
from actionspan.dataset.formats.times import unknown_time
from actionspan.dataset.matching import Names
from actionspan.dataset.sharding import find_videos
from actionspan.dataset.tables import Instance, instances_of
from actionspan.dataset.video_facts import probe_video


def complete(reading: Reading, folder: Path) -> None:
    """Give each record the duration, frames and frame rate of its video, where it has none.

    A video file that cannot be read is a rejection; one that is not there changes nothing.

    Raises:
        InputError: The folder cannot be read.
    """
    paths = find_videos(folder)
    names = Names(paths)
    for record in reading.records:
        video_id = names.find(record.video_id)
        if video_id is None or (record.seconds and record.frames and record.fps):
            continue
        if problem := _complete(record, paths[video_id]):
            reading.rejections.append(Rejection(str(paths[video_id]), "", problem))


def read_instances(path: Path, videos: Mapping[str, Path]) -> dict[str, tuple[Instance, ...]]:
    """Read the instances of each video; frames, and a video's end, are times by the video's file.

    Args:
        path: Annotations of any form.
        videos: The files of the videos by id. Only those are opened whose annotations need it.

    Raises:
        InputError: The annotations are missing or in no known form, or a row is not an instance.
    """
    found = {}
    for record in stream_annotation_file(path)[1]:
        needed = any(
            unknown_time(time) for raw in record.instances for time in (raw.start, raw.end)
        )
        if needed and record.video_id not in videos:
            continue  # nobody asks for it, and its times cannot be known
        if needed:
            _complete(record, videos[record.video_id])
        found[record.video_id] = instances_of(record)
    return found


def _complete(record: Record, path: Path) -> str:
    """Give a record what it lacks; return why the video file cannot be read, or nothing."""
    video = probe_video(path)
    if not video.error:
        record.seconds = record.seconds or video.duration_seconds
        record.frames = record.frames or video.frames
        record.fps = record.fps or video.fps
    return video.error
