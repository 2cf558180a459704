"""The clock of a live stream, and the state from which `--resume` continues."""

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import torch

from actionspan.errors import InputError
from actionspan.storage.torch_files import SPOILT, read_torch, restoring, unsealed, write_sealed

LEAST_STEP = 1e-3  # seconds between two frames at least: times must increase
_LONGEST_STEP = 10.0  # a source's own clock that jumps by more has been set
_FASTEST = 60.0  # frames a second: faster ones were held back, and show no rate
_AT_PACE = 0.75  # of the usual step, at least: frames that were held back come faster
_SLEW = 0.01  # of a step: how much shorter it is made where a source's clock runs ahead
STATE_FILE = "state.pt"
_FORMAT = "actionspan stream 3"
_ARRAY = "numpy array"  # key of an array inside the file, which holds tensors and plain values only


class LiveClock:
    """Gives each frame the wall-clock time since the stream's first frame, always increasing.

    Where the source stamps its frames, steps between frames are the source's: frames that the
    network holds back and delivers in a burst keep their distances. Each connection is tied to the
    wall clock at its first frame, so a gap between two connections has its true length. A frame
    that lacks its stamp follows the last one at the usual step.

    Without stamps a frame has the time of its arrival. It is unknown when the frames
    of a burst after a hole were seen, so they are skipped until frames come at their usual pace.

    Args:
        snippet_frames: Frames of a snippet; a jump by more of the usual steps is a hole.
        elapsed: Seconds that a resumed stream has lasted.
        now: A clock that never goes back.

    Attributes:
        holes: How many there were so far; the last stamped frame is behind them.
    """

    def __init__(
        self,
        snippet_frames: int,
        elapsed: float | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.holes = 0
        self._now = now
        self._origin: float | None = None if elapsed is None else now() - elapsed
        self._last = -LEAST_STEP if elapsed is None else elapsed
        self._own: float | None = None  # the last frame's own time stamp
        self._lacking = 0  # frames since then
        self._shift = 0.0  # from own time stamps to seconds of the stream
        self._first = True  # of a connection
        self._fewest = snippet_frames
        self._steps: deque[float] = deque(maxlen=4 * snippet_frames)
        self._usual = 1 / _FASTEST  # of these steps, in seconds
        # Of a source without stamps: when frames came, and how many frames may be late.
        self._came: deque[float] = deque(maxlen=snippet_frames + 1)
        self._late = 0.0

    def reconnected(self) -> None:
        """Tie the source's own clock to the wall clock at the next frame."""
        self._own, self._first, self._late = None, True, 0.0
        self._came.clear()

    def stamp(self, own: float | None) -> float | None:
        """Return the time of a frame that has just come; None: it is unknown when it was seen.

        `own` is the source's time stamp in seconds.
        """
        if self._origin is None:
            self._origin = self._now()
        wall = self._now() - self._origin
        self._lacking = 0 if own is not None else self._lacking + 1
        if own is not None:
            seconds = self._by_source(own, wall)
        elif self._own is not None and self._lacking <= self._fewest:
            seconds = self._last + self._usual
        elif self._is_late(wall):
            return None
        else:
            self._own, seconds = None, wall
        seconds = max(seconds, self._last + LEAST_STEP)
        if not self._first:
            step = seconds - self._last
            self.holes += self._is_hole(step)
            self._steps.append(step)
            self._usual = max(median(self._steps), 1 / _FASTEST)
        self._first, self._last = False, seconds
        return seconds

    def _by_source(self, own: float, wall: float) -> float:
        """Return the time of a frame by its own stamp."""
        step = 0.0 if self._own is None else own - self._own
        self._own = own
        if not 0 < step < _LONGEST_STEP:
            # never before an earlier time stamp: all later frames would crowd together
            self._shift = max(wall, self._last + LEAST_STEP) - own
        elif own + self._shift > wall:  # nothing is seen before it happens
            self._shift -= min(own + self._shift - wall, _SLEW * step)
        return own + self._shift

    def _is_late(self, wall: float) -> bool:
        """Whether a frame without a stamp may be one that was held back in a hole."""
        step = wall - self._came[-1] if self._came else 0.0
        steps = [later - came for came, later in pairwise(self._came)]
        # a late source has another hole too, unless its frames have come as rarely since the first
        as_rare = not steps or step <= self._fewest * median(steps)
        if self._is_hole(step) and not (self._late and as_rare):
            self._came.clear()
        elif not self._late:
            step = self._usual  # no hole: what came a little late was little held back
        self._came.append(wall)
        self._late = max(0.0, self._late + step / self._usual - 1)
        steps = [later - came for came, later in pairwise(self._came)]
        if len(steps) == self._fewest and median(steps) >= _AT_PACE * self._usual:
            if self._late:
                self._steps.extend(steps)  # it may have another rate from now on
            self._late = 0.0
        return self._late >= 1

    def _is_hole(self, step: float) -> bool:
        return len(self._steps) >= self._fewest and step > self._fewest * self._usual


class Place(NamedTuple):
    """A snippet without its actionness, which is still to come."""

    number: int
    seconds: float  # time stamp
    arrived: float  # `time.monotonic` when its centre frame came


@dataclass(kw_only=True)
class Progress:
    """Progress of a stream. With the last two fields it is the state that a later run resumes."""

    made_of: str  # digest of source, model and settings, which a resumed run must share
    ended: bool = False  # nothing is left to do
    snippets: int = 0  # numbered so far; the next has this number
    seconds: float = 0.0  # time stamp of the last one worked on
    done: int = 0  # worked on
    dropped: int = 0
    began: float = 0.0  # seconds since 1970 of the first frame of a live source
    unanswered: deque[Place] = field(default_factory=deque)
    written: Mapping[str, str] = field(default_factory=dict)  # fingerprints of files, by name
    proposer: Mapping[str, Any] = field(default_factory=dict)

    @property
    def date(self) -> str:
        """Date and time of the first frame of a live source."""
        return datetime.fromtimestamp(self.began, UTC).isoformat(timespec="milliseconds")


def write_state(folder: Path, at: Progress) -> None:
    """Write a state, atomically."""
    unanswered = [(place.number, place.seconds) for place in at.unanswered]
    changed = {"unanswered": unanswered, "proposer": _mapped(_packed, at.proposer)}
    write_sealed(folder / STATE_FILE, vars(at) | changed | {"format": _FORMAT})


def read_state(folder: Path, made_of: str) -> Progress | None:
    """Return the state of an earlier run, None if there is none.

    Raises:
        InputError: It belongs to another stream, or cannot be read.
    """
    path = folder / STATE_FILE
    if not path.is_file():
        return None
    content = read_torch(path, SPOILT)
    if not isinstance(content, Mapping) or content.get("format") != _FORMAT:
        raise InputError(f"{path}: not the state of a stream ({_FORMAT!r}); delete it")
    if content.get("made_of") != made_of:
        raise InputError(
            f"{path}: of another stream: the source, the model or a setting has changed; "
            "undo the change, or begin again without --resume"
        )
    content = unsealed(path, content)
    with restoring(path):
        at = Progress(**{name: content[name] for name in Progress.__dataclass_fields__})
        now = time.monotonic()
        at.unanswered = deque(
            Place(number, seconds, now) for number, seconds in content["unanswered"]
        )
        at.proposer = _mapped(_unpacked, at.proposer)
    return at


def _packed(value: Any) -> Any:
    """Return an array as a tensor, which is safe to read again."""
    if not isinstance(value, np.ndarray | np.generic):
        return value
    shape = value.shape if isinstance(value, np.ndarray) else None
    return {_ARRAY: torch.from_numpy(np.array(value, order="C")), "shape": shape}


def _unpacked(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    array = value[_ARRAY].numpy()
    return array[()] if value["shape"] is None else array.reshape(value["shape"])


def _mapped(change: Callable[[Any], Any], value: Any) -> Any:
    """Return a value with a change applied to every leaf of its dictionaries and lists."""
    if isinstance(value, Mapping) and _ARRAY not in value:
        return {key: _mapped(change, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_mapped(change, item) for item in value)
    return change(value)
