"""What annotations leave out about their videos, from the video files."""

import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from actionspan.annotations.formats import records
from actionspan.annotations.formats.records import Reading, Record, quoted
from actionspan.annotations.formats.registry import read_annotation_file
from actionspan.annotations.formats.rejections import Rejection
from actionspan.annotations.formats.times import unknown_time
from actionspan.annotations.tables import Instance, instances_of
from actionspan.dataset.matching import Names, check_instance
from actionspan.dataset.playlists import is_playlist, read_parts
from actionspan.dataset.sharding import find_videos
from actionspan.dataset.video_facts import count_own_frames, has_sound, probe_video
from actionspan.errors import InputError


def complete(reading: Reading, folder: Path) -> list[str]:
    """Give each record the duration, frames and frame rate of its video, where it has none.

    It also gets the name of its file, and whether that has sound, for tools that open it. A video
    file that cannot be read is a rejection. The files of a recording are videos of the folder, too.

    Returns:
        A line for each record without a video file.

    Raises:
        InputError: The folder cannot be read.
    """
    videos, files = find_videos(folder), dict[str, Path]()
    for path in filter(is_playlist, videos.values()):
        with suppress(InputError, OSError):
            files |= {part.path.stem: part.path for part in read_parts(path)}
    paths = files | videos
    names = Names(paths)
    unknown = []
    for record in reading.records:
        video_id = names.find(record.video_id)
        if video_id is None:
            what = f"no video of {folder} has the id {quoted(record.video_id, 100)}: not completed"
            unknown.append(Rejection(record.file, record.row, what).line())
            continue
        record.path, record.media = paths[video_id], paths[video_id].name
        record.has_sound = has_sound(record.path)
        if record.seconds and record.frames and record.fps:
            continue
        if problem := _complete(record, paths[video_id]):
            reading.rejections.append(Rejection(str(paths[video_id]), "", problem))
    return unknown


class Truth:
    """Checked annotations of videos that are read one by one; bad rows are reported.

    Args:
        path: Annotations of any format.
        videos: The files of the videos by id. A video is only opened if its annotations count
            frames or last to its end.
        **how: Arguments of `read_annotation_file`.

    Raises:
        InputError: The annotations are missing or in no known format.
    """

    def __init__(self, path: Path, videos: Mapping[str, Path], **how: Any) -> None:
        reading = read_annotation_file(path, **how)
        if videos.keys().isdisjoint(record.video_id for record in reading.records):
            print(f"{path}: names no video of these", file=sys.stderr)
        for record in reading.records:
            times = [time for raw in record.instances for time in (raw.start, raw.end)]
            if record.video_id in videos and any(map(unknown_time, times)):
                _complete(record, videos[record.video_id])
        records.drop_unsound(reading)
        # faults of other videos do not matter here
        reading.rejections = [
            bad for bad in reading.rejections if not bad.video_ids or videos.keys() & bad.video_ids
        ]
        records.report_left_out(reading)
        self._records = {record.video_id: record for record in reading.records}
        self.instances = {name: instances_of(record) for name, record in self._records.items()}

    def within(self, video_id: str, seconds: float) -> tuple[Instance, ...]:
        """Return the instances of a video of a given duration; report those outside it."""
        record = self._records.get(video_id)
        if record is None:
            return ()
        record.seconds = seconds
        reading = Reading(records=[record])
        records.drop_unsound(reading)
        records.report_left_out(reading)
        checked = (check_instance(raw, seconds, fps=record.fps)[0] for raw in record.instances)
        self.instances[video_id] = tuple(filter(None, checked))
        return self.instances[video_id]


def _complete(record: Record, path: Path) -> str:
    """Complete a record from its video file; return the reason if it cannot be read."""
    video = probe_video(path)
    if not video.error:
        count_own_frames(record, video)
        record.seconds = record.seconds or video.duration_seconds
        record.frames = record.frames or video.frames
        record.fps = record.fps or video.fps
    return video.error
