"""A video file's frames, decoded once, in order and never by seeking."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import av
import cv2
import numpy as np
from av.video.frame import VideoFrame

from actionspan.arrays import UInt8
from actionspan.dataset.containers import opened
from actionspan.dataset.settings import LimitSettings
from actionspan.dataset.timeline import Timeline, read_timeline
from actionspan.errors import InputError
from actionspan.jobs.apart import still_working
from actionspan.video.decord_reader import decord_pictures
from actionspan.video.settings import Decoder

# At most this many frames, and a quarter of the file, may be missing at the end: streams that are
# cut without decoding lose a few.
_FRAMES_ALLOWED_TO_LACK = 16


class Frame(NamedTuple):
    """One frame as displayed."""

    picture: Callable[[], UInt8]  # makes the (H, W, 3) RGB picture; frames not needed cost nothing
    seconds: float  # its time stamp, counted from the video's first frame


def read_frames(
    path: Path, *, limits: LimitSettings | None = None, decoder: Decoder = "pyav"
) -> Iterator[Frame]:
    """Yield every frame of a file in the order of display, rotation applied.

    Frames are decoded no faster than they are taken, except by decord, which decodes ahead without
    a bound. What decord cannot read follows by PyAV.

    Raises:
        InputError: The file is not a video, it is beyond the limits, its decoding breaks off, or
            decord is not installed.
    """
    limits = limits or LimitSettings()
    timeline = read_timeline(path, limits)
    done = 0
    if decoder == "decord" and timeline.continuous:
        for picture in decord_pictures(path):
            still_working()
            yield Frame(picture, timeline.at(done))
            done += 1
    if done < len(timeline):
        for stamp, picture in islice(_pyav_pictures(path, timeline, limits), done, None):
            still_working()
            at = timeline.at(done)
            if stamp is not None and not timeline.continuous:  # else AVI has stamps of no use
                at = stamp - timeline.origin
            yield Frame(picture, at)
            done += 1
    lacking = len(timeline) - timeline.headless - done
    if lacking > min(_FRAMES_ALLOWED_TO_LACK, len(timeline) // 4):
        raise _stopped(path, done, timeline)


def _pyav_pictures(
    path: Path, timeline: Timeline, limits: LimitSettings
) -> Iterator[tuple[float | None, Callable[[], UInt8]]]:
    """Yield the frames FFmpeg decodes through PyAV, each with its time stamp where it has one."""
    done = 0
    try:
        with opened(path) as (container, stream):
            stream.thread_type = "NONE"
            stream.codec_context.thread_count = 1
            for frame in container.decode(stream):
                limits.check(frame.width, frame.height, done)  # a stream may change its size
                stamped = frame.time is not None and not np.isnan(timeline.origin)
                yield frame.time if stamped else None, partial(pyav_picture, frame)
                done += 1
    except (OSError, av.FFmpegError):
        raise _stopped(path, done, timeline) from None


def pyav_picture(frame: VideoFrame) -> UInt8:
    """Return a frame that PyAV decoded as an (H, W, 3) RGB picture, rotation applied."""
    upright = np.rot90(frame.to_ndarray(format="rgb24"), round(frame.rotation / 90))
    return np.ascontiguousarray(upright, dtype=np.uint8)


def _stopped(path: Path, done: int, timeline: Timeline) -> InputError:
    return InputError(
        f"{path}: decoding stopped at frame {done} of {len(timeline)}: the file is damaged there; "
        "get it again or leave it out"
    )


def fitted_size(height: int, width: int, short_side: int) -> tuple[int, int]:
    """Return the height and width a frame is reduced to: never enlarged, its aspect kept, even."""
    scale = short_side / min(height, width)
    if scale >= 1:
        return height, width
    return 2 * max(1, round(height * scale / 2)), 2 * max(1, round(width * scale / 2))


def resized(picture: UInt8, size: tuple[int, int]) -> UInt8:
    """Return an (H, W, 3) picture at a height and width."""
    if picture.shape[:2] == size:
        return picture
    return np.asarray(cv2.resize(picture, size[::-1], interpolation=cv2.INTER_AREA), np.uint8)
