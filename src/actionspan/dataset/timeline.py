"""When the frames of a video file are shown: its own times, as a stated rate may be a mean."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import av
import numpy as np
from numpy.typing import ArrayLike

from actionspan.annotations.formats.times import frames_of
from actionspan.annotations.tables import Video
from actionspan.arrays import Float64
from actionspan.dataset.containers import opened
from actionspan.dataset.settings import LimitSettings
from actionspan.errors import InputError
from actionspan.jobs.apart import still_working


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """When each frame of a file is shown, read from its packets.

    The stream is the one FFmpeg calls best: the largest image that is not a cover image.
    """

    seconds: Float64  # (frames,) increasing from 0
    rate: float  # frames a second that the container states, their mean where it varies; else 25
    step: float  # the usual time between two frames, for frames without a packet of their own
    origin: float  # time stamp of the first frame in seconds; NaN where stamps are unusable
    headless: int  # packets before the first key frame, which give no frame
    continuous: bool  # every packet gives one frame, and rewinding works

    def __len__(self) -> int:
        return len(self.seconds)

    def at(self, index: int) -> float:
        """Return when frame `index` is shown in seconds."""
        if index < len(self.seconds):
            return float(self.seconds[index])
        return float(self.seconds[-1] + self.step * (index - len(self.seconds) + 1))

    def frames_of(self, segment: Sequence[float]) -> tuple[int, int]:
        """Return the first and the last frame that are shown in a segment (start, end)."""
        return frames_of(segment, self.rate, self.seconds)


def uneven(seconds: Float64, rate: float) -> Float64:
    """Return when frames are shown, in seconds, or nothing where they follow each other at a rate.

    At a constant rate they are off by the rounding of their stamps, to milliseconds at most.
    """
    off = np.abs(seconds - np.arange(len(seconds)) / rate)
    return np.zeros(0) if (off <= min(1e-3, 0.25 / rate)).all() else seconds


def _own_seconds(video: Video) -> Float64:
    """Return when each frame of a probed video is shown; nothing where `fps` decides it."""
    here = video.variable and video.path.is_file()
    return read_timeline(video.path).seconds if here else np.zeros(0)


def frames_in(videos: Mapping[str, Video], name: str, segment: Sequence[float]) -> Sequence[int]:
    """Return the first and the last frame of a segment, nothing where no rate is known."""
    video = videos.get(name)
    return frames_of(segment, video.fps, _own_seconds(video)) if video and video.fps else ()


def seconds_of(frames: ArrayLike, video: Video) -> Float64:
    """Return when frames of a probed video are shown in seconds; they need not be whole."""
    own, numbers = _own_seconds(video), np.asarray(frames, np.float64)
    inside = np.clip(numbers, 0, max(len(own) - 1, 0))
    known = np.interp(inside, np.arange(len(own)), own) if len(own) else 0.0
    return np.asarray(known + (numbers - inside) / video.fps)


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Raise an `InputError` where the block cannot read a video file."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except av.FFmpegError as error:
        reason = error.strerror or "unknown format"
        raise InputError(f"{path}: not a video that FFmpeg can read: {reason}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def read_timeline(path: Path, limits: LimitSettings | None = None) -> Timeline:
    """Read the time stamps of a file's frames without decoding them, once for the last few files.

    Where time stamps are missing or repeat, frames follow each other at the stated rate.

    Raises:
        InputError: The file cannot be read, holds no frame or is beyond the limits.
    """
    with readable(path):
        status = path.stat()
    return _read_timeline(path, limits or LimitSettings(), status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=4)
def _read_timeline(path: Path, limits: LimitSettings, *_: int) -> Timeline:
    # 1. read the packets
    stamps = array("q")
    missing, trimmed, headless, headed = 0, 0, 0, False
    with readable(path), opened(path) as (container, stream):
        rate = float(stream.average_rate or stream.guessed_rate or 25)
        tick = float(stream.time_base or 1 / rate)
        width, height = stream.codec_context.width, stream.codec_context.height
        limits.check(width, height, stream.frames)
        for before, packet in enumerate(container.demux(stream)):  # the last is empty
            limits.check(width, height, before)
            still_working()
            if packet.size == 0:
                continue
            headed = headed or packet.is_keyframe
            headless += not headed
            if packet.is_discard:
                trimmed += 1
            elif packet.pts is None:
                missing += 1
            else:
                stamps.append(packet.pts)
        # rewinding misses the first frame of the one, and decord reads no other
        seekable = container.format.name not in ("mpegts", "concat")
    # 2. put their time stamps in the order of display
    frames = len(stamps) + missing
    if frames == 0:
        raise InputError(f"{path}: the video stream has no frame")
    ordered = np.sort(np.array(stamps, dtype=np.int64))
    stamped = missing == 0 and bool((np.diff(ordered) > 0).all())
    seconds = (ordered - ordered[0]) * tick if stamped else np.arange(frames) / rate
    return Timeline(
        seconds=seconds,
        rate=rate,
        step=float(np.sort(np.diff(seconds))[(frames - 1) // 2]) if frames > 1 else 1 / rate,
        origin=float(ordered[0] * tick) if stamped else float("nan"),
        headless=headless,
        continuous=seekable and trimmed == 0 and headless == 0,
    )
