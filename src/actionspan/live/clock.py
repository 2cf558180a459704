"""When a frame of a live source was seen, in seconds since the stream began."""

import time
from collections.abc import Callable

_LEAST_STEP = 1e-3  # seconds between two frames at least: times must increase
_LONGEST_STEP = 10.0  # a source's own clock that jumps by more has been set


class LiveClock:
    """Gives each frame the wall-clock time since the stream's first frame, always increasing.

    Where the source stamps its frames, steps between frames are the source's: frames that the
    network holds back and delivers in a burst keep their distances. Each connection is tied to the
    wall clock at its first frame, so a gap between two connections is as long as it was.

    Args:
        elapsed: Seconds the stream had lasted when this process began: of one that is resumed.
        now: A clock that never goes back.
    """

    def __init__(
        self, elapsed: float | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._now = now
        self._origin: float | None = None if elapsed is None else now() - elapsed
        self._last = -_LEAST_STEP if elapsed is None else elapsed
        self._own: float | None = None  # the last frame's own time stamp
        self._shift = 0.0  # from own time stamps to seconds of the stream

    def reconnected(self) -> None:
        """Tie the source's own clock to the wall clock at the next frame."""
        self._own = None

    def stamp(self, own: float | None) -> float:
        """Return the time of a frame that has just come, given its own time stamp if it has one."""
        if self._origin is None:
            self._origin = self._now()
        wall = self._now() - self._origin
        seconds = wall
        if own is not None:
            if self._own is None or not 0 < own - self._own < _LONGEST_STEP:
                # never behind what was said before: all frames behind it would crowd together
                self._shift = max(wall, self._last + _LEAST_STEP) - own
            self._own, seconds = own, own + self._shift
        self._last = max(seconds, self._last + _LEAST_STEP)
        return self._last
