"""Times as annotation files have them: seconds, m:ss, h:mm:ss, frames, the end of the video."""

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from actionspan.arrays import Float64

_NEAR = 2e-3  # seconds: stamps of frames and times of events may each be rounded to milliseconds
OVERSHOOT = 1.0  # seconds by which a segment may end after its video
POINT = "a point, which has no length"
_ROUNDING = 0.5 / 12  # seconds before the video, by which a time in frames may be rounded
_LONGEST = 64  # characters of a number
_CLOCK = re.compile(r"(?:(\d+):)?(\d+):(\d\d(?:\.\d*)?)", re.ASCII)
_COMMA = re.compile(r"[+-]?[\d:]*\d,\d+", re.ASCII)


@dataclass(frozen=True)
class Frame:
    """The time at which a frame begins; the first is number 0. Parts of one are rounded."""

    number: float


@dataclass(frozen=True)
class VideoEnd:
    """The end of the video, where a file has an instance last to it."""


def to_number(value: object) -> float | None:
    """Return a finite number given as a number or as text, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and ("_" in value or len(value) > _LONGEST):  # float() takes 1_000
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < 1e12 else None  # NaN compares false


def frames_of(
    segment: Sequence[float], rate: float, seconds: Sequence[float] | Float64 = ()
) -> tuple[int, int]:
    """Return the first and the last frame, from 0, that are shown in a segment; at least one is.

    Args:
        segment: Its start and end in seconds.
        rate: Frames a second.
        seconds: When each frame of the file is shown; none: at the rate.
    """
    near = min(_NEAR, 0.25 / rate)
    start, end = segment[0] + near, segment[1] - near
    first, last = math.floor(start * rate), math.ceil(end * rate) - 1
    if len(seconds):
        first, last = bisect_right(seconds, start) - 1, bisect_left(seconds, end) - 1
    return max(first, 0), max(first, last, 0)


def to_seconds(value: object, seconds: float = 0.0, fps: float = 0.0) -> float | None:
    """Return a time in seconds, None for what gives none.

    Args:
        value: A number, or text: seconds, m:ss, h:mm:ss, each with a fraction or without; or a
            `Frame`, or `VideoEnd`.
        seconds: The duration of the video; 0: not known.
        fps: Its frames a second; 0: not known.
    """
    if isinstance(value, Frame):
        if not fps:
            return None
        integral = float(value.number).is_integer()
        return value.number / fps if integral else round(value.number / fps, 6)
    if isinstance(value, VideoEnd):
        return seconds or None
    clock = None
    if isinstance(value, str) and len(value) <= _LONGEST:
        clock = _CLOCK.fullmatch(value.strip())
    if clock is None:
        return to_number(value)
    hours, minutes, rest = int(clock[1] or 0), int(clock[2]), float(clock[3])
    if rest >= 60 or (clock[1] and minutes >= 60):
        return None
    return to_number(hours * 3600 + minutes * 60 + rest)


def times_problem(
    start: float,
    end: float,
    seconds: float = 0.0,
    overshoot: float = OVERSHOOT,
    *,
    may_be_empty: bool = False,
) -> str:
    """Return why no segment of a video has these times, or an empty text.

    All that takes annotations asks here, so that a row is right or wrong everywhere.

    Args:
        start: In seconds.
        end: In seconds.
        seconds: The duration of the video; 0: not known.
        overshoot: Seconds by which it may end after the video: 215 segments of ActivityNet-1.3 end
            up to 0.85 s late.
        may_be_empty: Whether it may end where it starts, as in protocols of scoring.
    """
    if start < -_ROUNDING:
        return f"start {start:g} is before the video, which begins at 0"
    if start > end:
        return f"start {start:g} is not before end {end:g}"
    if start == end and not may_be_empty:
        return POINT
    if end <= 0 and not may_be_empty or seconds and (start >= seconds or end > seconds + overshoot):
        inside = f", 0…{seconds:g} s" if seconds else ""
        return f"segment {start:g}…{end:g} s is outside the video{inside}"
    return ""


def around(time: float, length: float, seconds: float = 0.0) -> tuple[float, float]:
    """Return start and end of an event of a length around a point, clipped to its video.

    All is in seconds; the duration of the video is 0 if it is not known.
    """
    start, end = time - length / 2, time + length / 2
    if time < 0 or 0 < seconds < time:
        return start, end  # not clipped: such a point is an error, not a shorter event
    return max(start, 0.0), min(end, seconds or end)


def with_decimal_point(text: str) -> str:
    """Return a number or a time that is written with a decimal comma with a point."""
    return text.replace(",", ".") if _COMMA.fullmatch(text) else text


def unknown_time(value: object) -> str:
    """Name the fact that a time still lacks; empty for one that is or never will be known."""
    if isinstance(value, Frame):
        what = f"is frame {value.number:g}, and the frame rate is not known here"
    elif isinstance(value, VideoEnd):
        what = "is the end of the video, and its duration is not known here"
    else:
        return ""
    return f"{what}: `actionspan dataset convert --videos FOLDER` writes seconds"
