"""Clips of a video file: copied from key frame on, or encoded again from frame to frame."""

import os
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import av
import numpy as np
from av.video.frame import VideoFrame

from actionspan.arrays import UInt8
from actionspan.dataset.containers import open_container, opened
from actionspan.errors import InputError
from actionspan.events.clips import Clip
from actionspan.files.storage import atomic_path
from actionspan.video.decode import pyav_picture, read_timeline, readable, resized

_TICK = Fraction(1, 90_000)
_SAME = 1e-6  # seconds: a time stamp as a float may be above itself as a fraction
_FORMS = {".mp4": "mp4", ".mov": "mov", ".webm": "webm", ".mkv": "matroska"}  # as they were
_ENCODER = "libx264"


class NotCopiedError(InputError):
    """The container that a clip would be copied into does not take its streams."""


def copy_clip(clip: Clip, folder: Path) -> Path:
    """Copy a clip's pictures and sound without encoding; it begins at the key frame before.

    Returns:
        The file: in the container of the video where that is common, else Matroska.

    Raises:
        NotCopiedError: The clip must be encoded.
        InputError: The video cannot be read.
    """
    suffix = clip.video.suffix.lower()
    out = folder / f"{clip.name}{suffix if suffix in _FORMS else '.mkv'}"
    first = _key_before(clip)
    with readable(clip.video), open_container(clip.video) as source, atomic_path(out) as partial:
        streams: list[Any] = [source.streams.best("video"), source.streams.best("audio")]
        streams = [stream for stream in streams if stream is not None]
        left = set(streams)
        with av.open(str(partial), "w", format=_FORMS[out.suffix]) as file:
            try:
                copies = {stream: file.add_stream_from_template(stream) for stream in streams}
            except ValueError as error:
                raise NotCopiedError(f"{clip.video}: {error}") from None
            source.seek(round(first / streams[0].time_base), stream=streams[0])
            end, copied = clip.end + _origin(clip.video), 0
            for packet in _with_decoding_times(source.demux(streams)):
                # in the order of decoding: pictures behind the end may be needed by those before
                if packet.dts * packet.time_base >= end:
                    left.discard(packet.stream)
                elif packet.pts * packet.time_base > first - _SAME and packet.stream in left:
                    shift = round(first / packet.time_base)
                    packet.pts, packet.dts = packet.pts - shift, packet.dts - shift
                    packet.stream = copies[packet.stream]
                    file.mux(packet)
                    copied += packet.stream.type == "video"
                if not left:
                    break
        if not copied:
            raise NotCopiedError(f"{clip.video}: its packets have no times")
    return out


def _with_decoding_times(packets: Iterable[Any]) -> Iterator[Any]:
    """Yield packets that have times; of some, Matroska does not say right after a seek."""
    waiting: dict[Any, list[Any]] = {}
    for packet in packets:
        if packet.pts is None:
            continue
        first = waiting.setdefault(packet.stream, [])
        if packet.dts is None:
            first.append(packet)
            continue
        for place, each in enumerate(first):
            each.dts = packet.dts - len(first) + place
            yield each
        first.clear()
        yield packet
    for left in waiting.values():
        for each in left:
            each.dts = each.pts
            yield each


def _key_before(clip: Clip) -> float:
    """Return the time stamp in seconds of the last key frame that is not after a clip's start."""
    at = clip.start + _origin(clip.video)
    with readable(clip.video), opened(clip.video) as (container, stream):
        base = stream.time_base or _TICK
        container.seek(max(round(at / base), 0), stream=stream)
        for packet in container.demux(stream):
            if packet.is_keyframe and packet.pts is not None:
                return float(packet.pts * base)
    raise InputError(f"{clip.video}: no key frame before {clip.start:.3f} s")


def encode_clip(clip: Clip, folder: Path) -> Path:
    """Encode the frames of a clip again, H.264 in MP4 without sound: those from start to end.

    Raises:
        InputError: The video cannot be read, or FFmpeg has no encoder for H.264 here.
    """
    out = folder / f"{clip.name}.mp4"
    _encode(frames_of(clip), out)
    return out


def write_reel(clips: Iterable[Clip], out: Path) -> None:
    """Encode all clips as one film, in the size of the first; see `encode_clip`."""

    def frames() -> Iterator[tuple[float, UInt8]]:
        at = 0.0
        for clip in clips:
            last = at
            for seconds, picture in frames_of(clip):
                last = at + seconds
                yield last, picture
            at = max(last + 1 / 25, at + clip.end - clip.start)

    _encode(frames(), out)


def frames_of(clip: Clip) -> Iterator[tuple[float, UInt8]]:
    """Yield the pictures of a clip, upright, each with its time after the start in seconds."""
    origin, given = _origin(clip.video), False
    with readable(clip.video), opened(clip.video) as (container, stream):
        stream.thread_count = 1
        base = stream.time_base or _TICK
        container.seek(max(round((clip.start + origin) / base), 0), stream=stream)
        for frame in container.decode(stream):
            if frame.time is None:
                continue
            at = frame.time - origin
            if at >= clip.end - 1e-6:
                break
            if at >= clip.start - 1e-6:
                given = True
                yield at - clip.start, pyav_picture(frame)
    if not given:
        raise InputError(f"{clip.video}: no frame from {clip.start:.3f} to {clip.end:.3f} s")


@lru_cache(maxsize=16)  # it reads the whole file, which may have many clips
def _origin(path: Path) -> float:
    """Return the time stamp of the first frame, or 0 where stamps are of no use."""
    origin = read_timeline(path).origin
    return 0.0 if np.isnan(origin) else origin


def _encode(frames: Iterator[tuple[float, UInt8]], out: Path) -> None:
    if _ENCODER not in av.codecs_available:
        raise InputError(f"PyAV has no encoder {_ENCODER} here; that of pip install av has it")
    options = {"movflags": "+faststart"}
    with atomic_path(out) as partial, av.open(str(partial), "w", "mp4", options=options) as file:
        video: Any = None
        shape, last = (0, 0), -1
        for seconds, picture in frames:
            if video is None:
                shape = (picture.shape[0] // 2 * 2, picture.shape[1] // 2 * 2)
                video = file.add_stream(_ENCODER, rate=25, options={"crf": "18", "bf": "0"})
                video.height, video.width = shape
                video.pix_fmt, video.codec_context.time_base = "yuv420p", _TICK
                video.codec_context.thread_count = min(4, os.cpu_count() or 1)
            stamp = max(round(seconds / _TICK), last + 1)
            shown = VideoFrame.from_ndarray(resized(picture, shape), format="rgb24")
            shown.pts, shown.time_base, last = stamp, _TICK, stamp
            file.mux(video.encode(shown))
        if video is not None:
            file.mux(video.encode(None))
