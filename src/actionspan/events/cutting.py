"""Clips of a video file: copied from key frame on, or encoded again from frame to frame."""

import math
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import av
from av.video.frame import VideoFrame

from actionspan.arrays import UInt8
from actionspan.dataset.containers import open_container, opened
from actionspan.dataset.playlists import first_file
from actionspan.dataset.timeline import Timeline, read_timeline, readable
from actionspan.errors import InputError
from actionspan.storage.writing import atomic_path
from actionspan.video.decode import Frame, pyav_picture, read_frames, resized

_TICK = Fraction(1, 90_000)
_EARLIER = (0, 2, 8, 32, 128, math.inf)  # seconds: a seek may end behind the place, or find nothing
_LEADING = 16  # frames, at most, that refer to frames before the file's first key frame
_SAME = 1e-6  # seconds: a time stamp as a float may be above itself as a fraction
_FORMS = {".mp4": "mp4", ".mov": "mov", ".webm": "webm", ".mkv": "matroska"}  # as they were
_ENCODER = "libx264"


class Clip(NamedTuple):
    """A part of a video to cut out, in seconds."""

    video: Path
    start: float
    end: float
    label: str
    name: str  # of its file, without suffix


class NotCopiedError(InputError):
    """The container that a clip would be copied into does not take its streams."""


def copy_clip(clip: Clip, folder: Path) -> Path:
    """Copy a clip's frames and sound without encoding, from a key frame at or before its start.

    Returns:
        The file: in the container of the video where that is common, else Matroska.

    Raises:
        NotCopiedError: The clip must be encoded.
        InputError: The video cannot be read.
    """
    suffix = first_file(clip.video).suffix.lower()
    out = folder / f"{clip.name}{suffix if suffix in _FORMS else '.mkv'}"
    timeline = read_timeline(clip.video)
    shown, last = timeline.frames_of((clip.start, clip.end))
    place, first = _landing(clip.video, timeline.origin + timeline.at(shown))
    end = timeline.origin + timeline.at(last + 1)
    with readable(clip.video), open_container(clip.video) as source, atomic_path(out) as partial:
        streams: list[Any] = [source.streams.best("video"), source.streams.best("audio")]
        streams = [stream for stream in streams if stream is not None]
        left = set(streams)
        with av.open(str(partial), "w", format=_FORMS[out.suffix]) as file:
            try:
                copies = {stream: file.add_stream_from_template(stream) for stream in streams}
            except ValueError as error:
                raise NotCopiedError(f"{clip.video}: {error}") from None
            _seek(source, streams[0], place)
            copied, reached = 0, dict[Any, float]()
            for packet in _with_decoding_times(source.demux(streams)):
                # in the order of decoding: frames behind the end may be needed by those before
                if packet.dts * packet.time_base >= end:
                    left.discard(packet.stream)
                elif packet.dts <= reached.get(packet.stream, -math.inf):
                    continue  # a file's sound may last into the next
                elif packet.pts * packet.time_base > first - _SAME and packet.stream in left:
                    reached[packet.stream] = packet.dts
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
    """Yield packets that have times; right after a seek, Matroska does not state some."""
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


def _landing(path: Path, at: float) -> tuple[float, float]:
    """Return which time stamp to seek to for a key frame at or before one, and the key frame's own.

    Raises:
        NotCopiedError: None is there, or stamps are not of frames: AVI has their order.
    """
    for place in (at - early for early in _EARLIER):
        with readable(path), opened(path) as (container, stream):
            if container.format.name == "avi" and stream.codec_context.has_b_frames:
                break
            _seek(container, stream, place)
            head = next(container.decode(stream), None)
        if head and head.key_frame and head.time is not None and head.time < at + _SAME:
            return place, head.time
    raise NotCopiedError(f"{path}: no key frame before {at:.3f} s")


def _seek(container: Any, stream: Any, at: float) -> None:
    """Go to a time stamp, or near it; a file that was just opened is at its start."""
    with suppress(av.FFmpegError):
        if math.isfinite(at):
            container.seek(round(at / (stream.time_base or _TICK)), stream=stream)


def encode_clip(clip: Clip, folder: Path) -> Path:
    """Encode the frames of a clip again, H.264 in MP4 without sound: those from start to end.

    Raises:
        InputError: The video cannot be read, or FFmpeg has no encoder for H.264 here.
    """
    out = folder / f"{clip.name}.mp4"
    _encode(frames_of(clip), out)
    return out


def write_reel(clips: Iterable[Clip], out: Path) -> None:
    """Encode all clips as one video, in the size of the first; see `encode_clip`."""

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
    """Yield the frames of a clip, upright, each with its time after the start in seconds.

    Raises:
        InputError: The video cannot be read, or frames of the clip are not there.
    """
    timeline = read_timeline(clip.video)
    first, last = timeline.frames_of((clip.start, clip.end))
    begin, end, count = timeline.at(first), timeline.at(last), last + 1 - first
    lacking, allowed = count, count - 1  # at the end of a file that was cut
    head = timeline.headless + _LEADING
    inside = clip.start < timeline.at(len(timeline))
    for frame in _frames_from(clip.video, timeline, begin) if inside else ():
        if frame.seconds > end + _SAME:
            allowed = head if first < head else 0
            break
        if frame.seconds > begin - _SAME:
            lacking -= 1
            yield max(frame.seconds - clip.start, 0.0), frame.picture()
    if lacking > allowed:
        what = "no frame" if lacking == count else f"only {count - lacking} of {count} frames"
        raise InputError(f"{clip.video}: {what} from {clip.start:.3f} to {clip.end:.3f} s")


def _frames_from(path: Path, timeline: Timeline, begin: float) -> Iterator[Frame]:
    """Yield the frames from one that is shown at a time or before it, or all."""
    try:
        place, _ = _landing(path, begin + timeline.origin)
    except NotCopiedError:
        yield from read_frames(path)
        return
    with readable(path), opened(path) as (container, stream):
        stream.thread_count = 1
        _seek(container, stream, place)
        for frame in container.decode(stream):
            if frame.time is not None and not frame.is_corrupt:
                yield Frame(partial(pyav_picture, frame), frame.time - timeline.origin)


def _encode(frames: Iterator[tuple[float, UInt8]], out: Path) -> None:
    if _ENCODER not in av.codecs_available:
        raise InputError(f"PyAV has no encoder {_ENCODER} here; the wheel of pip install av has it")
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
