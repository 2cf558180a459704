"""Times as annotation files have them: seconds, m:ss, h:mm:ss, frames, the end of the video."""

import re
from dataclasses import dataclass

_LONGEST = 64  # characters of a number
_CLOCK = re.compile(r"(?:(\d+):)?(\d+):(\d\d(?:\.\d*)?)", re.ASCII)
_COMMA = re.compile(r"[+-]?[\d:]*\d,\d+", re.ASCII)


@dataclass(frozen=True)
class Frame:
    """The time at which a frame begins; the first is number 0."""

    number: float


@dataclass(frozen=True)
class VideoEnd:
    """The end of the video, where a file says that an instance lasts to it."""


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


def to_seconds(value: object, seconds: float = 0.0, fps: float = 0.0) -> float | None:
    """Return a time in seconds, None for what gives none.

    Args:
        value: A number, or text: seconds, m:ss, h:mm:ss, each with a fraction or without; or a
            `Frame`, or `VideoEnd`.
        seconds: The duration of the video; 0: not known.
        fps: Its frames a second; 0: not known.
    """
    if isinstance(value, Frame):
        return value.number / fps if fps else None
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


def with_decimal_point(text: str) -> str:
    """Return a number or a time that is written with a decimal comma with a point."""
    return text.replace(",", ".") if _COMMA.fullmatch(text) else text


def unknown_time(value: object) -> str:
    """Say what is missing to know a time; empty for one that is or never will be known."""
    if isinstance(value, Frame):
        what = f"is frame {value.number:g}, and the frame rate is not known here"
    elif isinstance(value, VideoEnd):
        what = "is the end of the video, whose duration is not known here"
    else:
        return ""
    return f"{what}: `actionspan dataset convert --videos FOLDER` writes seconds"
