"""Frames of a file or of a live source, each with its time in seconds since the stream began."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import groupby, pairwise
from statistics import median

from actionspan.errors import InputError
from actionspan.live.connection import Connection, connect
from actionspan.live.settings import Source, StreamSettings
from actionspan.video.decode import Frame, read_frames

_LEAST_STEP = 1e-3  # seconds between two frames at least: times must increase
_LONGEST_STEP = 10.0  # a source's own clock that jumps by more has been set
_FASTEST = 60.0  # frames a second: those that come faster were held back, and say nothing of a rate
_AT_PACE = 0.75  # of the usual step, at least: frames that were held back come faster
_SLEW = 0.01  # of a step: how much shorter it is made where a source's clock runs ahead
_USUAL_STEP = 1 / 25  # seconds between two frames without time stamps
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 15.0  # seconds between two attempts to connect again


class LiveClock:
    """Gives each frame the wall-clock time since the stream's first frame, always increasing.

    Where the source stamps its frames, steps between frames are the source's: frames that the
    network holds back and delivers in a burst keep their distances. Each connection is tied to the
    wall clock at its first frame, so a gap between two connections is as long as it was. A frame
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
        self._last = -_LEAST_STEP if elapsed is None else elapsed
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
        seconds = max(seconds, self._last + _LEAST_STEP)
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
            # never behind what was said before: all frames behind it would crowd together
            self._shift = max(wall, self._last + _LEAST_STEP) - own
        elif own + self._shift > wall:  # nothing is seen before it happens
            self._shift -= min(own + self._shift - wall, _SLEW * step)
        return own + self._shift

    def _is_late(self, wall: float) -> bool:
        """Whether a frame without a stamp may be one that was held back in a hole."""
        step = wall - self._came[-1] if self._came else 0.0
        if not self._late and self._is_hole(step):
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


class FileFrames:
    """A file: one stretch, decoded as everywhere else; or a file on a web server."""

    live = False

    def __init__(self, source: Source, connection: Connection | None = None) -> None:
        self._source, self._connection = source, connection
        self.file = source.shown if connection is None else ""  # as it is shown; empty: it is none

    def resume(self, elapsed: float) -> None:
        """Do nothing: a file is read again from its start."""

    def stretches(self, stopped: threading.Event) -> Iterator[Iterator[Frame]]:
        """Yield all frames."""
        if self._connection is None:
            yield read_frames(self._source.path)
        else:
            yield _downloaded(self._connection)


def _downloaded(connection: Connection) -> Iterator[Frame]:
    shift, at = None, -_USUAL_STEP  # from own time stamps to seconds since the first frame
    with closing(connection):
        for picture, own in connection.frames():
            following = at + _USUAL_STEP
            if own is not None:
                shift = following - own if shift is None else shift
                following = max(own + shift, at + _LEAST_STEP)
            at = following
            yield Frame(picture, at)


class LiveFrames:
    """A camera: connected again whenever it is lost, after longer and longer waits."""

    live = True
    file = ""

    def __init__(
        self, source: Source, connection: Connection, settings: StreamSettings, snippet_frames: int
    ) -> None:
        self._source, self._connection, self._settings = source, connection, settings
        self._fewest, self._clock = snippet_frames, LiveClock(snippet_frames)

    def resume(self, elapsed: float) -> None:
        """Go on with a stream that has lasted so many seconds."""
        self._clock = LiveClock(self._fewest, elapsed)

    def stretches(self, stopped: threading.Event) -> Iterator[Iterator[Frame]]:
        """Yield stretches without a gap inside, each from one connection.

        Raises:
            InputError: The source broke off for good.
        """
        connection: Connection | None = self._connection
        wait, last_seen = _FIRST_WAIT, time.monotonic()
        reason = f"{self._source.shown}: ended"
        while True:
            if connection is not None:
                self._clock.reconnected()
                seen = _Watched(connection, self._clock)
                with closing(connection):
                    for _, stretch in groupby(seen, lambda _: self._clock.holes):
                        yield stretch
                reason = seen.reason or reason
                if seen.frames:
                    wait, last_seen = _FIRST_WAIT, time.monotonic()
            silent = time.monotonic() - last_seen
            if silent + wait > self._settings.reconnect_seconds:
                raise InputError(f"{reason}; tried again for {silent:.0f} s")
            if stopped.wait(wait):
                return
            wait = min(2 * wait, _LONGEST_WAIT)
            try:
                connection = connect(self._source, self._settings)
            except InputError as error:
                connection, reason = None, str(error)


class _Watched:
    """The frames of one connection; why it ended; and how many there were."""

    def __init__(self, connection: Connection, clock: LiveClock) -> None:
        self._connection, self._clock = connection, clock
        self.frames, self.reason = 0, ""

    def __iter__(self) -> Iterator[Frame]:
        try:
            for picture, own in self._connection.frames():
                self.frames += 1
                seconds = self._clock.stamp(own)
                if seconds is not None:
                    yield Frame(picture, seconds)
        except InputError as error:
            self.reason = str(error)


Frames = FileFrames | LiveFrames
