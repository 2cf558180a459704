"""Small images of a video at times, without decoding all of it.

A key frame serves where one is near; else the frames after it are decoded, up to the time wanted.
FFmpeg seeks to key frames, and each image has the time stamp of its own frame: it may be a little
early, and is never labelled with another time. Features are not made so: see `video.decode`.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import av
import numpy as np
from av.container import InputContainer
from av.video.frame import VideoFrame
from av.video.reformatter import Interpolation
from av.video.stream import VideoStream

from actionspan.arrays import UInt8
from actionspan.dataset.containers import opened
from actionspan.dataset.settings import LimitSettings
from actionspan.errors import InputError
from actionspan.jobs.apart import still_working
from actionspan.video.jpegs import jpeg_of

_QUALITY = 75  # of JPEG
_MOST_FRAMES = 5000  # decoded for one image: a long video may have a single key frame
_EARLIER = (0.0, 1.0, 5.0, 25.0)  # seconds: in MPEG-TS seeking may end after the time wanted,
# and misses the first GOP
_ROUNDING = 1e-3  # seconds: of time stamps
_UNREADABLE = (OSError, av.FFmpegError, InputError)
_Opened = tuple[InputContainer, VideoStream]


class _Picture(NamedTuple):
    """An image (h, w, 3) of a video at a time in seconds from its first frame."""

    seconds: float
    rgb: UInt8


def thumbnails(path: Path, count: int, height: int = 72) -> list[tuple[float, bytes]]:
    """Return the time in seconds and JPEG of images of `count` equal parts of a video, in order.

    Each is a frame of the first half of its part, upright, with square pixels, `height` of them. A
    part without a frame has none; a video that is missing or damaged has fewer or none.
    """
    seconds = _seconds(path)
    times = [(index + 0.5) * seconds / count for index in range(count)]
    found = read_thumbnails(path, times, height, early=0.5 * seconds / count)
    own = {picture.seconds: picture.rgb for picture in found if picture is not None}
    return [(seconds, jpeg_of(rgb, _QUALITY).tobytes()) for seconds, rgb in own.items()]


def read_thumbnails(
    path: Path, times: Sequence[float], height: int, early: float = 0.0
) -> list[_Picture | None]:
    """Return the image at each time, None where it cannot be decoded.

    The times are in seconds from the first frame, rising. The images have this `height` and the
    shape of the video as displayed. Frames up to `early` seconds before a time will do, which
    saves decoding.
    """
    pictures: list[_Picture | None] = [None] * len(times)
    with suppress(*_UNREADABLE), opened(path) as main, opened(path) as scout:
        reader = _Reader(path, main, scout)
        for index, seconds in enumerate(times):
            with suppress(*_UNREADABLE):
                pictures[index] = reader.picture(seconds, height, early)
    return pictures


def _seconds(path: Path) -> float:
    """Return the duration that a file states, 0 where it does not or cannot be read."""
    with suppress(*_UNREADABLE), opened(path) as (container, stream):
        if stream.duration is not None and stream.time_base is not None:
            return float(stream.duration * stream.time_base)
        return (container.duration or 0) / av.time_base
    return 0.0


def _from_the_start(path: Path) -> Iterator[VideoFrame]:
    with opened(path) as (container, stream):
        yield from container.decode(stream)


class _Reader:
    """A video, decoded from the key frames before the times that are asked for.

    The `scout` is the file opened again, to see where seeking leads without leaving the frame being
    decoded from `main`.
    """

    def __init__(self, path: Path, main: _Opened, scout: _Opened) -> None:
        self._path, self._main, self._scout = path, main, scout
        stream = main[1]
        stream.thread_type = "NONE"
        stream.codec_context.thread_count = 1
        self._tick = float(stream.time_base or 1)
        self._origin = (stream.start_time or 0) * self._tick
        self._limits = LimitSettings()
        self._frames: Iterator[VideoFrame] = iter(())
        self._shown: VideoFrame | None = None
        self._next: VideoFrame | None = None  # decoded too, and shown later

    def picture(self, seconds: float, height: int, early: float) -> _Picture | None:
        """Return the image that is shown at a time, not before the last one asked for."""
        if self._shown is None or self._at(self._shown) < self._key_before(seconds):
            self._seek(seconds)
        for _ in range(_MOST_FRAMES):
            still_working()
            if self._shown is not None and self._at(self._shown) >= seconds - early - _ROUNDING:
                break
            frame, self._next = self._next or next(self._frames, None), None
            if frame is None:
                break
            self._limits.check(frame.width, frame.height, 0)  # a stream may change its size
            if self._shown is not None and self._at(frame) > seconds + _ROUNDING:
                self._next = frame
                break
            self._shown = frame
        else:
            return None
        shown = self._shown
        return None if shown is None else _Picture(self._at(shown), self._small(shown, height))

    def _at(self, frame: VideoFrame) -> float:
        """Return a frame's time in seconds: AVI has stamps of decoding only."""
        stamp = frame.dts if frame.pts is None else frame.pts
        return 0.0 if stamp is None else max(stamp * self._tick - self._origin, 0.0)

    def _key_before(self, seconds: float) -> float:
        """Return the time of the key frame from which a time would be decoded."""
        container, stream = self._scout
        self._seek_in(self._scout, seconds)
        packet = next(container.demux(stream), None)
        stamp = None if packet is None else packet.pts
        return 0.0 if stamp is None else stamp * self._tick - self._origin

    def _seek(self, seconds: float) -> None:
        """Decode from a key frame at or before a time, or from the first."""
        container, stream = self._main
        for earlier in _EARLIER:
            self._shown = self._next = None
            self._seek_in(self._main, max(seconds - earlier, 0.0))
            self._frames = container.decode(stream)
            self._next = next(self._frames, None)
            if self._next is not None and self._at(self._next) <= seconds + _ROUNDING:
                return
        self._frames = _from_the_start(self._path)
        self._next = None

    def _seek_in(self, file: _Opened, seconds: float) -> None:
        container, stream = file
        stamp = round((seconds + self._origin) / self._tick)
        container.seek(stamp, backward=True, stream=stream)

    def _small(self, frame: VideoFrame, height: int) -> UInt8:
        """Return a frame upright, with square pixels and `height` of them."""
        quarters = round(frame.rotation / 90)
        shape = float(self._main[1].sample_aspect_ratio or 1) * frame.width / frame.height
        rows, columns = (height, height * shape) if quarters % 2 == 0 else (height / shape, height)
        small = frame.reformat(
            width=max(round(columns), 1),
            height=max(round(rows), 1),
            format="rgb24",
            interpolation=Interpolation.AREA,
        )
        return np.ascontiguousarray(np.rot90(small.to_ndarray(), quarters), dtype=np.uint8)
