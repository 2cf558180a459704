"""What is known of a video before it is decoded."""

from pathlib import Path

import av

from actionspan.dataset.video_facts import probe_video
from actionspan.errors import InputError
from actionspan.video.opening import opened


def read_duration(path: Path) -> float:
    """Return the length of a video in seconds.

    Raises:
        InputError: The file is missing or cannot be decoded.
    """
    video = probe_video(path)
    if video.error:
        raise InputError(f"{path}: {video.error}")
    return video.duration_seconds


def read_frame_rate(path: Path) -> float | None:
    """Return the frames per second that a container states, None where it cannot be read."""
    try:
        with opened(path) as (_, stream):
            rate = stream.average_rate or stream.guessed_rate
            return float(rate) if rate else None
    except (av.FFmpegError, OSError, InputError):
        return None
