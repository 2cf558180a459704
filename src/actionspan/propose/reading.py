"""What is known of a video before it is decoded."""

from pathlib import Path

from actionspan.dataset.video_facts import probe_video
from actionspan.errors import InputError


def read_duration(path: Path) -> float:
    """Return the length of a video in seconds.

    Raises:
        InputError: The file is missing or cannot be decoded.
    """
    video = probe_video(path)
    if video.error:
        raise InputError(f"{path}: {video.error}")
    return video.duration_seconds
