"""What annotations leave out about their videos, from the video files."""

from pathlib import Path

from actionspan.dataset.formats.records import Reading
from actionspan.dataset.formats.rejections import Rejection
from actionspan.dataset.matching import Names
from actionspan.dataset.sharding import find_videos
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
        video = probe_video(paths[video_id])
        if video.error:
            reading.rejections.append(Rejection(str(video.path), "", video.error))
            continue
        record.seconds = record.seconds or video.duration_seconds
        record.frames = record.frames or video.frames
        record.fps = record.fps or video.fps
