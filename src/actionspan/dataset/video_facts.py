"""Facts about a video file, read from its packets without decoding.

The stream is FFmpeg's best, which decord picks too: the largest image, not a cover image. Its
packets are its frames, so `frames` is the count of a sequential decoder. A file is bad when its
container states a greater length than it has, when a packet is damaged, or when an H.264/H.265 unit
passes the end of its packet (decord stops there, OpenCV ends early in silence). In streams without
a stated length (MPEG-PS, MPEG-TS, live Matroska) a missing rest shows only if it cut a packet in
two.
"""

import hashlib
import statistics
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
from av.container import InputContainer

from actionspan.annotations.formats.records import Record
from actionspan.annotations.formats.times import Frame
from actionspan.annotations.tables import Video
from actionspan.dataset import containers
from actionspan.dataset.containers import open_container, opened
from actionspan.dataset.settings import LimitSettings
from actionspan.dataset.timeline import seconds_of, uneven
from actionspan.errors import InputError, lacks_memory
from actionspan.jobs.apart import error_line, still_working

_BLOCK = 1 << 20  # bytes read at once
# of their headers; FLV counts the delay of B-frames in, others have none and FFmpeg estimates it
_STATED_DURATION = ("matroska,webm", "asf", "mxf")
_REGULAR = 0.9  # share of the frames of a constant rate that a damaged file still has


def probe_video(path: Path, limits: LimitSettings | None = None, *, checksum: bool = True) -> Video:
    """Probe a file; if it is bad or beyond the limits, `error` is the reason and the numbers are 0.

    Without `checksum` it has no `sha256`, for which all bytes are read.
    """
    try:
        if path.stat().st_size == 0:
            raise InputError("the file is empty")
        found = _read_packets(path, bad_video(path, ""), limits or LimitSettings())
        return replace(found, sha256=file_sha256(path)) if checksum else found
    except InputError as error:
        return bad_video(path, str(error).removeprefix(f"{path}: "))
    except av.FFmpegError as error:
        return bad_video(path, f"not a video that FFmpeg can read: {error.strerror}")
    except OSError as error:
        return bad_video(path, f"cannot be read: {error.strerror}")
    except Exception as error:
        if lacks_memory(error):
            raise
        return bad_video(path, error_line(error))


def bad_video(path: Path, error: str) -> Video:
    """Return the facts of an unusable file: the reason."""
    none = {"fps": 0.0, "frames": 0, "duration_seconds": 0.0, "width": 0, "height": 0}
    return Video(video_id=path.stem, path=path, sha256="", error=error, **none)  # type: ignore[arg-type]


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's bytes in hexadecimal."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            found.update(block)
            still_working()
    return found.hexdigest()


def has_sound(path: Path) -> bool:
    """Return whether a file has sound; one that cannot be read has none."""
    try:
        with open_container(path) as container:
            return bool(container.streams.audio)
    except (av.FFmpegError, OSError, InputError):
        return False


def _read_packets(path: Path, video: Video, limits: LimitSettings) -> Video:
    """Fill in a video's facts, or raise InputError."""
    # 1. the container and its stream
    stated, size = containers.stated_bytes(path), path.stat().st_size
    if stated > size:
        raise InputError(f"truncated: {size} bytes of at least {stated}")
    with opened(path) as (container, stream):
        width, height = stream.codec_context.width, stream.codec_context.height
        if width < 1 or height < 1:
            raise InputError("the video stream has no frame size")
        limits.check(width, height, stream.frames)
        unit_bytes = _unit_length_bytes(stream.codec_context.name, stream.codec_context.extradata)
        rate = float(stream.average_rate or stream.guessed_rate or 0)
        tick = float(stream.time_base or 0)
        # 2. its packets
        times: list[float] = []
        last_duration, last_time, frames, hidden = 0.0, float("-inf"), 0, 0
        for before, packet in enumerate(container.demux(stream)):  # the last is empty
            limits.check(width, height, before)
            still_working()
            if packet.size == 0:
                continue
            if packet.is_corrupt:
                raise InputError(f"damaged or truncated at frame {frames}")
            if unit_bytes and not _units_fit(memoryview(packet), unit_bytes):
                raise InputError(f"damaged at frame {frames}: its data do not fit its packet")
            if packet.is_discard:  # an edit list hides it: no player shows it
                hidden += 1
                continue
            frames += 1
            if packet.pts is not None:
                times.append(packet.pts * tick)
                if times[-1] > last_time:
                    last_time, last_duration = times[-1], (packet.duration or 0) * tick
        # 3. the container's own facts, and the packets'
        if frames < 2:
            only = "has a single frame; two or more are needed" if frames else "has no frame"
            raise InputError(f"the video stream {only}")
        if "mp4" in container.format.name and len(stream.index_entries) > frames + hidden:
            raise InputError(f"truncated: {frames} of {len(stream.index_entries)} frames are there")
        if containers.turned_sideways(path, stream.id):
            width, height = height, width
        stated_frames = max(stream.frames - hidden, 0) or _frames_by_duration(
            container, containers.stated_seconds(path), times, rate, tick
        )
    # 4. the rate and the duration by their times
    fps, duration = timing(times, frames, rate, tick, last_duration)
    seconds = np.sort(times) - min(times, default=0)
    stamped = len(times) == frames and bool((np.diff(seconds) > 0).all())
    return replace(
        video,
        fps=fps,
        frames=frames,
        variable=int(stamped and len(uneven(seconds, fps)) > 0),
        duration_seconds=duration,
        width=width,
        height=height,
        stated_frames=stated_frames,
    )


def _frames_by_duration(
    container: InputContainer, seconds: float, times: Sequence[float], rate: float, tick: float
) -> int:
    """Return the number of frames by the duration in a container's header, 0 if not known.

    It is known where no other stream may be longer, and frames follow at the stated rate; in MXF
    they do before any is lost. `seconds` is known of ASF.
    """
    stated = container.format.name in _STATED_DURATION and len(container.streams) == 1
    seconds = seconds or (container.duration or 0) / av.time_base
    if not stated or not seconds or rate <= 0 or len(times) < 2:
        return 0
    steps = [after - before for before, after in pairwise(sorted(times))]
    others = [step for step in steps if abs(step - 1 / rate) > 1.01 * tick]
    regular = len(steps) - len(others)
    # a short WMV with one gap, of whole frames, has lost them; other files may hold a frame
    gap = sum(others) if container.format.name == "asf" and len(others) == 1 <= regular else 0.0
    lost = gap > 0 and abs(gap - round(gap * rate) / rate) <= 1.01 * tick
    if container.format.name != "mxf" and not lost and regular < _REGULAR * len(steps):
        return 0
    return round(seconds * rate)


def timing(
    times: Sequence[float], frames: int, rate: float, tick: float, last_duration: float
) -> tuple[float, float]:
    """Return frames per second and the duration in seconds.

    Args:
        times: Time stamps of the frames in seconds, in any order.
        frames: Number of frames.
        rate: Frames per second the header states, else 0.
        tick: The resolution of the time stamps in seconds.
        last_duration: How long the frame with the last time stamp is shown, 0 if unknown.

    Returns:
        The stated rate and frames / rate if every step is a frame long to a tick; otherwise
        (variable frame rate) the duration is the span of the time stamps, the last frame included,
        and the rate is frames / duration.

    Raises:
        InputError: There is neither a rate nor a pair of time stamps.
    """
    ordered = sorted(times)
    steps = [after - before for before, after in pairwise(ordered)]
    unstamped = len(steps) < frames - 1 or not any(steps)
    if rate > 0 and (unstamped or all(abs(step - 1 / rate) <= 1.01 * tick for step in steps)):
        return rate, frames / rate
    if not any(steps):
        raise InputError("no frame rate and no time stamps")
    usual = statistics.median(steps)
    if all(abs(step - usual) <= 1.01 * tick for step in steps):
        usual = (ordered[-1] - ordered[0]) / len(steps)
        return 1 / usual, frames * usual
    last = last_duration if 0 < last_duration <= max(steps) else usual
    duration = ordered[-1] - ordered[0] + last
    return frames / duration, duration


def _unit_length_bytes(codec: str, extradata: bytes | None) -> int:
    """Return the bytes of the length before each H.264/H.265 unit, 0 where there is none."""
    if not extradata or extradata[0] != 1:  # start codes instead of lengths
        return 0
    place, header = {"h264": (4, 6), "hevc": (21, 22)}.get(codec, (0, len(extradata)))
    return (extradata[place] & 3) + 1 if len(extradata) > header else 0


def _units_fit(packet: memoryview, length_bytes: int) -> bool:
    """Return whether the units of a packet, each after its length, stay inside the packet."""
    place, size = 0, len(packet)
    while place + length_bytes < size:
        length = int.from_bytes(packet[place : place + length_bytes], "big")
        place += length_bytes + length
        if length == 0 or place > size:
            return False
    return True


def count_own_frames(record: Record, video: Video) -> None:
    """Give times in frames of a probed video in seconds, where no rate of a tool's own is known."""
    for raw in record.instances if video.variable and not record.fps else ():
        for name in ("start", "end"):
            if isinstance(value := getattr(raw, name), Frame):
                setattr(raw, name, float(seconds_of(value.number, video)))
