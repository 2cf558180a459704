"""The thread that reads a source: frames to snippets, paced, counted, connected again when lost."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby, islice
from typing import Protocol

from actionspan.arrays import UInt8
from actionspan.errors import InputError, lacks_memory
from actionspan.live.clock import LiveClock
from actionspan.live.connection import Connection, connect
from actionspan.live.handover import Arrived, Gap, HandOver
from actionspan.live.settings import StreamSettings
from actionspan.live.source import Source
from actionspan.running.faults import described
from actionspan.video.decode import Frame, read_frames
from actionspan.video.pictures import resized
from actionspan.video.settings import FrameSettings
from actionspan.video.snippets import cut_snippets

_USUAL_STEP, _LEAST_STEP = 1 / 25, 1e-3  # seconds between two frames: without stamps, and at all
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 15.0  # seconds between two attempts to connect again


@dataclass(frozen=True, kw_only=True)
class Begin:
    """Where reading begins: at the first frame, or where an earlier run stopped."""

    snippet: int = 0  # the first that is wanted
    seconds: float | None = None  # time stamp of the snippet before it
    elapsed: float | None = None  # of a live source: seconds since its first frame


class Frames(Protocol):
    """Stretches of frames without a gap inside."""

    live: bool
    file: str  # how a file is shown; empty: it is none

    def stretches(self, stopped: threading.Event) -> Iterator[Iterator[Frame]]:
        """Yield stretches; of a live source each is from one connection.

        Raises:
            InputError: The source broke off for good.
        """


class FileFrames:
    """A file: one stretch, decoded as everywhere else; or a file on a web server."""

    live = False

    def __init__(self, source: Source, connection: Connection | None = None) -> None:
        self._source, self._connection = source, connection
        self.file = source.shown if connection is None else ""

    def stretches(self, stopped: threading.Event) -> Iterator[Iterator[Frame]]:
        """Yield all frames."""
        if self._connection is None:
            yield read_frames(self._source.path, steady=True)
        else:
            yield self._downloaded()

    def _downloaded(self) -> Iterator[Frame]:
        assert self._connection is not None
        shift, at = None, -_USUAL_STEP  # from own time stamps to seconds since the first frame
        try:
            for picture, own in self._connection.frames():
                following = at + _USUAL_STEP
                if own is not None:
                    shift = following - own if shift is None else shift
                    following = max(own + shift, at + _LEAST_STEP)
                at = following
                yield Frame(picture, at)
        finally:
            self._connection.close()


class LiveFrames:
    """A camera: connected again whenever it is lost, with longer and longer waits."""

    live = True
    file = ""

    def __init__(
        self,
        source: Source,
        connection: Connection,
        settings: StreamSettings,
        snippet_frames: int,
        elapsed: float | None = None,
    ) -> None:
        self._source, self._connection, self._settings = source, connection, settings
        self._clock = LiveClock(snippet_frames, elapsed)

    def stretches(self, stopped: threading.Event) -> Iterator[Iterator[Frame]]:
        """Yield the frames of one connection after the other, and of each up to a hole."""
        connection: Connection | None = self._connection
        wait, last_seen = _FIRST_WAIT, time.monotonic()
        reason = f"{self._source.shown}: ended"
        while True:
            if connection is not None:
                self._clock.reconnected()
                seen = _Watched(connection, self._clock)
                try:
                    for _, stretch in groupby(seen, lambda _: self._clock.holes):
                        yield stretch
                finally:
                    connection.close()
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


class Reader:
    """Reads in a thread of its own and hands snippets over.

    Args:
        frames: Where frames come from.
        cutting: What is kept of a snippet.
        settings: Pace and duration.
        hand_over: Takes the snippets; closed when no more come.
        begin: Where to begin.
    """

    def __init__(
        self,
        frames: Frames,
        cutting: FrameSettings,
        settings: StreamSettings,
        hand_over: HandOver,
        begin: Begin | None = None,
    ) -> None:
        self.frames = 0  # read so far
        self.seconds = 0.0  # time stamp of the last
        self.reached_limit = False
        self.lost = False  # no connection, and all that came before is handed over
        self._source, self._cutting, self._settings = frames, cutting, settings
        self._hand_over, self._begin = hand_over, begin or Begin()
        self._stopped = threading.Event()
        self._shape: tuple[int, int] | None = None
        # Time stamps of the frames of the last snippets, and when they came.
        kept = 4 * (cutting.snippet_frames + cutting.stack)
        self._arrivals: deque[tuple[float, float]] = deque(maxlen=kept)
        self._pace: float | None = None  # when a file's first frame was due
        self._thread = threading.Thread(target=self._read, name="reader", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self, wait: float = 2.0) -> None:
        """End reading; a read that hangs ends by itself at its timeout."""
        self._stopped.set()
        self._hand_over.close()
        if self._thread.is_alive():
            self._thread.join(wait)

    def _read(self) -> None:
        try:
            self._hand_over_snippets()
        except BaseException as error:
            # a bug is a file's reason; of an address, its text may hold a password
            if self._source.file and not isinstance(error, InputError) and not lacks_memory(error):
                error = InputError(f"{self._source.file}: {described(error)}")
            self._hand_over.close(error)
        else:
            self._hand_over.close()

    def _hand_over_snippets(self) -> None:
        before, skip, live = self._begin.seconds, self._begin.snippet, self._source.live
        number, lost = skip, ""
        for stretch in self._source.stretches(self._stopped):
            self._arrivals.clear()
            cut = cut_snippets(self._counted(stretch), self._cutting)
            for snippet in islice(cut, 0 if live else skip, None):
                gap = None
                if lost and before is not None:
                    gap = Gap(start=before, end=snippet.seconds, dropped=0, reason=lost)
                arrived = Arrived(
                    number=number,
                    snippet=snippet,
                    after=before,
                    centre_arrived=self._arrival(snippet.seconds),
                    arrived=time.monotonic(),
                    gap=gap,
                )
                if not self._hand_over.put(arrived):
                    return
                number, before, lost = number + 1, snippet.seconds, ""
            if self._stopped.is_set() or self.reached_limit:
                return
            lost, self.lost = "lost", live

    def _counted(self, stretch: Iterator[Frame]) -> Iterator[Frame]:
        """Count frames, note when they came, keep their size and pace, and end when told to."""
        limit, live = self._settings.duration, self._source.live
        for frame in stretch:
            if self._stopped.is_set():
                return
            if limit is not None and frame.seconds >= limit:
                self.reached_limit = True
                return
            self._wait_for(frame.seconds)
            self.lost = False
            self.frames += 1
            self.seconds = frame.seconds
            self._arrivals.append((frame.seconds, time.monotonic()))
            yield frame._replace(picture=partial(self._fitted, frame.picture)) if live else frame

    def _fitted(self, picture: Callable[[], UInt8]) -> UInt8:
        """Return a picture at the size of the stream's first: a camera may change its size."""
        pixels = picture()
        self._shape = self._shape or (pixels.shape[0], pixels.shape[1])
        return resized(pixels, self._shape)

    def _wait_for(self, seconds: float) -> None:
        """Wait until a frame of a file is due, where it plays at its own rate."""
        if self._settings.rate != "real" or self._source.live:
            return
        if self._begin.seconds is not None and seconds <= self._begin.seconds:
            return  # an earlier run has seen it
        if self._pace is None:
            self._pace = time.monotonic() - seconds
        self._stopped.wait(max(0.0, self._pace + seconds - time.monotonic()))

    def _arrival(self, seconds: float) -> float:
        """Return when the frame with a time stamp came, and forget earlier ones."""
        while self._arrivals and self._arrivals[0][0] < seconds:
            self._arrivals.popleft()
        return self._arrivals[0][1] if self._arrivals else time.monotonic()
