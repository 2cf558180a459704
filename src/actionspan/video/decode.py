"""A video file's frames, decoded once, in order and never by seeking."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, cast

import av
import cv2
import numpy as np
from av.video.frame import VideoFrame
from av.video.reformatter import ColorRange

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
_LUMA_FIRST = {f"{form}{kind}p" for form in ("yuv", "yuvj") for kind in (420, 422, 444)} | {"nv12"}
_LEVELS = np.arange(256, dtype=np.uint8)
_LIMITED = ((_LEVELS.clip(16, 235) - 16.0) * 255 / 219).round().astype(np.uint8)
Luma = tuple[UInt8, UInt8]
"""An (H, W) plane, and the grey (256,), 0 … 255, of each of its levels."""


class Frame(NamedTuple):
    """One frame as displayed."""

    picture: Callable[[], UInt8]  # makes the (H, W, 3) RGB image; frames not needed cost nothing
    seconds: float  # its time stamp, counted from the video's first frame
    luma: Callable[[], Luma | None] = lambda: None  # None: it has no plane of 8 bits
    whole: "Frame | None" = None  # the frame itself, where this one shows only its zones


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
        for stamp, frame in islice(_pyav_frames(path, timeline, limits), done, None):
            still_working()
            at = timeline.at(done)
            if stamp is not None and not timeline.continuous:  # else AVI has stamps of no use
                at = stamp - timeline.origin
            yield Frame(partial(pyav_picture, frame), at, partial(_luma, frame))
            done += 1
    lacking = len(timeline) - timeline.headless - done
    if lacking > min(_FRAMES_ALLOWED_TO_LACK, len(timeline) // 4):
        raise _stopped(path, done, timeline)


def _pyav_frames(
    path: Path, timeline: Timeline, limits: LimitSettings
) -> Iterator[tuple[float | None, VideoFrame]]:
    """Yield the frames FFmpeg decodes through PyAV, each with its time stamp where it has one."""
    done = 0
    try:
        with opened(path) as (container, stream):
            stream.thread_type = "NONE"
            stream.codec_context.thread_count = 1
            for frame in container.decode(stream):
                limits.check(frame.width, frame.height, done)  # a stream may change its size
                stamped = frame.time is not None and not np.isnan(timeline.origin)
                yield frame.time if stamped else None, frame
                done += 1
    except (OSError, av.FFmpegError):
        raise _stopped(path, done, timeline) from None


def pyav_picture(frame: VideoFrame) -> UInt8:
    """Return a frame that PyAV decoded as an (H, W, 3) RGB image, rotation applied."""
    # more threads cost more than they save
    rgb = frame.to_ndarray(format="rgb24", threads=1)
    return np.ascontiguousarray(np.rot90(rgb, round(frame.rotation / 90)), dtype=np.uint8)


def _luma(frame: VideoFrame) -> Luma | None:
    """Return the luma of a frame as PyAV decoded it, upright; None if it has no plane of 8 bits."""
    name, plane = frame.format.name, cast(Any, frame.planes[0])
    if name not in _LUMA_FIRST or plane.line_size <= 0:  # rows may lie from the last to the first
        return None
    rows = np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)[:, : frame.width]
    full = name.startswith("yuvj") or frame.color_range == ColorRange.JPEG
    return np.rot90(rows, round(frame.rotation / 90)), _LEVELS if full else _LIMITED


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
    """Return an (H, W, 3) image at a height and width, each pixel a mean of those it covers."""
    picture = reduced(picture, size)
    if picture.shape[:2] == size:
        return picture
    return np.asarray(cv2.resize(picture, size[::-1], interpolation=cv2.INTER_AREA), np.uint8)


def reduced(picture: UInt8, size: tuple[int, int]) -> UInt8:
    """Return an image in whole blocks of its pixels, no smaller than a height and width.

    Means of parts of pixels, which another size needs, take several times as long.
    """
    block = min(picture.shape[0] // size[0], picture.shape[1] // size[1])
    if block < 2:
        return picture
    rows, columns = picture.shape[0] // block, picture.shape[1] // block
    whole = picture[: rows * block, : columns * block]
    return np.asarray(cv2.resize(whole, (columns, rows), interpolation=cv2.INTER_AREA), np.uint8)
