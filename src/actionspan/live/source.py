"""Frames of a file, a camera or an address, and the thread that hands whole snippets over."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import groupby, islice

from actionspan.arrays import UInt8
from actionspan.errors import InputError, lacks_memory
from actionspan.jobs.apart import error_line
from actionspan.live.clock import LEAST_STEP, LiveClock
from actionspan.live.connection import Connection, connect
from actionspan.live.hand_over import Arrived, Gap, HandOver
from actionspan.live.settings import Source, StreamSettings
from actionspan.video.decode import Frame, read_frames, resized
from actionspan.video.settings import FrameSettings
from actionspan.video.snippets import cut_snippets
from actionspan.video.sound import LiveSound, sound_frames
from actionspan.video.zones import Zones, only_inside

_USUAL_STEP = 1 / 25  # seconds between two frames without time stamps
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 15.0  # seconds between two attempts to connect again


class FileFrames:
    """A file: one stretch, decoded as everywhere else; or a file on a web server."""

    live = False

    def __init__(
        self,
        source: Source,
        connection: Connection | None = None,
        sound: LiveSound | None = None,
    ) -> None:
        self._source, self._connection, self._sound = source, connection, sound
        self.file = source.shown if connection is None else ""  # as it is shown; empty: it is none

    def stretches(self, stopped: threading.Event) -> Iterator[Iterator[Frame]]:
        """Yield all frames."""
        if self._connection is None:
            frames = read_frames(self._source.path)
            yield frames if self._sound is None else _with_sound(frames, self._source, self._sound)
        else:
            yield _downloaded(self._connection, self._sound)


def _with_sound(frames: Iterator[Frame], source: Source, sound: LiveSound) -> Iterator[Frame]:
    """Yield the frames of a file, each when the sound before it is counted."""
    coming = sound_frames(source.path)
    following = next(coming, None)
    for frame in frames:
        while following is not None and following[1] <= frame.seconds:
            sound.add(*following)
            following = next(coming, None)
        yield frame


def _downloaded(connection: Connection, sound: LiveSound | None) -> Iterator[Frame]:
    shift, at = None, -_USUAL_STEP  # from own time stamps to seconds since the first frame
    connection.sound = sound
    with closing(connection):
        for picture, own in connection.frames():
            following = at + _USUAL_STEP
            if own is not None:
                shift = following - own if shift is None else shift
                following = max(own + shift, at + LEAST_STEP)
            if sound is not None:
                sound.shift = shift
            at = following
            yield Frame(picture, at)


class LiveFrames:
    """A camera: connected again whenever it is lost, after longer and longer waits."""

    live = True
    file = ""

    def __init__(
        self,
        source: Source,
        connection: Connection,
        settings: StreamSettings,
        snippet_frames: int,
        sound: LiveSound | None = None,
    ) -> None:
        self._source, self._connection, self._settings = source, connection, settings
        self._sound = sound
        self._fewest, self._clock = snippet_frames, LiveClock(snippet_frames)
        self._seen = False  # a frame of this connection
        self._reason = f"{source.shown}: ended"

    def resume(self, elapsed: float) -> None:
        """Continue a stream that has lasted `elapsed` seconds."""
        self._clock = LiveClock(self._fewest, elapsed)

    def stretches(self, stopped: threading.Event) -> Iterator[Iterator[Frame]]:
        """Yield stretches without a gap inside, each from one connection.

        Raises:
            InputError: The source ended and does not return.
        """
        connection: Connection | None = self._connection
        wait, last_seen = _FIRST_WAIT, time.monotonic()
        while True:
            # 1. Yield what comes until the connection is lost.
            self._seen = False
            if connection is not None:
                with closing(connection):
                    frames = self._frames(connection)
                    for _, stretch in groupby(frames, lambda _: self._clock.holes):
                        yield stretch
            if self._seen:
                wait, last_seen = _FIRST_WAIT, time.monotonic()
            # 2. Wait, or give up.
            silent = time.monotonic() - last_seen
            if silent + wait > self._settings.reconnect_seconds:
                raise InputError(f"{self._reason}; tried again for {silent:.0f} s")
            if stopped.wait(wait):
                return
            wait = min(2 * wait, _LONGEST_WAIT)
            # 3. Connect again.
            try:
                connection = connect(self._source, self._settings)
            except InputError as error:
                connection, self._reason = None, str(error)

    def _frames(self, connection: Connection) -> Iterator[Frame]:
        """Yield the frames of a connection; note whether there were any and why it ended."""
        self._clock.reconnected()
        connection.sound = self._sound
        try:
            for picture, own in connection.frames():
                self._seen = True
                seconds = self._clock.stamp(own)
                if self._sound is not None and own is not None and seconds is not None:
                    self._sound.shift = seconds - own
                if seconds is not None:
                    yield Frame(picture, seconds)
        except InputError as error:
            self._reason = str(error)


Frames = FileFrames | LiveFrames


class Reader:
    """Reads frames in a thread and hands snippets over; closes `hand_over` when no more come.

    A resumed stream skips the first `skip` snippets; `before` is the last one's time in seconds.
    Only the inside of the `zones` is seen, if there are any.
    """

    def __init__(
        self,
        frames: Frames,
        cutting: FrameSettings,
        settings: StreamSettings,
        hand_over: HandOver,
        skip: int = 0,
        before: float | None = None,
        zones: Zones = (),
    ) -> None:
        self.live, self._zones = frames.live, zones
        self.hand_over = hand_over
        self.frames = 0  # read so far
        self.seconds = 0.0  # time stamp of the last
        self.reached_limit = False
        self.lost = False  # no connection, and all that came before is handed over
        # the square around motion would look seconds ahead
        self._source, self._cutting = frames, replace(cutting, mover_side=0)
        self._settings, self._skip, self._before = settings, skip, before
        self._stopped = threading.Event()
        self._shape: tuple[int, int] | None = None
        # Time stamps of the frames of the last snippets, and when they came.
        kept = 4 * (cutting.snippet_frames + cutting.stack)
        self._arrivals: deque[tuple[float, float]] = deque(maxlen=kept)
        self._pace: float | None = None  # when a file's first frame was due
        self._thread = threading.Thread(target=self._read, name="reader", daemon=True)

    def start(self) -> None:
        """Start reading."""
        self._thread.start()

    def stop(self, wait: float = 2.0) -> None:
        """End reading; a read that hangs ends by itself at its timeout."""
        self._stopped.set()
        self.hand_over.close()
        if self._thread.is_alive():
            self._thread.join(wait)

    def _read(self) -> None:
        failure: BaseException | None = None
        try:
            self._hand_over_snippets()
        except BaseException as error:
            failure = error
            # a bug is a file's reason; of an address, its text may hold a password
            if self._source.file and not isinstance(error, InputError) and not lacks_memory(error):
                failure = InputError(f"{self._source.file}: {error_line(error)}")
        self.hand_over.close(failure)

    def _hand_over_snippets(self) -> None:
        number, before, lost = self._skip, self._before, False
        for stretch in self._source.stretches(self._stopped):
            self._arrivals.clear()
            seen = only_inside(self._counted(stretch), self._zones)
            cut = cut_snippets(seen, self._cutting)
            for snippet in islice(cut, 0 if self.live else self._skip, None):
                gap, now = None, time.monotonic()
                if lost and before is not None:
                    gap = Gap(start=before, end=snippet.seconds, dropped=0, reason="lost")
                while self._arrivals and self._arrivals[0][0] < snippet.seconds:
                    self._arrivals.popleft()
                arrived = Arrived(
                    number=number,
                    snippet=snippet,
                    after=before,
                    centre_arrived=self._arrivals[0][1] if self._arrivals else now,
                    arrived=now,
                    gap=gap,
                )
                if not self.hand_over.put(arrived):
                    return
                number, before, lost = number + 1, snippet.seconds, False
            if self._stopped.is_set() or self.reached_limit:
                return
            lost, self.lost = True, self.live

    def _counted(self, stretch: Iterator[Frame]) -> Iterator[Frame]:
        """Count frames, note their arrival, keep their size and pace, and end at the limit."""
        limit = self._settings.duration
        for frame in stretch:
            if self._stopped.is_set():
                return
            if limit is not None and frame.seconds >= limit:
                self.reached_limit = True
                return
            if self._settings.rate == "real" and not self.live:
                self._wait_for(frame.seconds)
            self.lost = False
            self.frames += 1
            self.seconds = frame.seconds
            self._arrivals.append((frame.seconds, time.monotonic()))
            if self.live:  # a camera may change its size
                frame = frame._replace(picture=partial(self._fitted, frame.picture))
            yield frame

    def _fitted(self, picture: Callable[[], UInt8]) -> UInt8:
        """Return an image at the size of the stream's first."""
        pixels = picture()
        self._shape = self._shape or (pixels.shape[0], pixels.shape[1])
        return resized(pixels, self._shape)

    def _wait_for(self, seconds: float) -> None:
        """Wait until a frame is due, unless an earlier run has seen it."""
        if self._before is not None and seconds <= self._before:
            return
        if self._pace is None:
            self._pace = time.monotonic() - seconds
        self._stopped.wait(max(0.0, self._pace + seconds - time.monotonic()))
