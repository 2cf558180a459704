"""The thread that reads a source, and the bounded queue by which it hands whole snippets over."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from actionspan.arrays import UInt8
from actionspan.errors import InputError, lacks_memory
from actionspan.jobs.apart import described
from actionspan.live.frames import Frames
from actionspan.live.settings import Policy, StreamSettings
from actionspan.video.decode import Frame, resized
from actionspan.video.settings import FrameSettings
from actionspan.video.snippets import Snippet, cut_snippets


@dataclass(frozen=True, kw_only=True)
class Gap:
    """A stretch of the stream that nothing is known of."""

    start: float  # seconds: time of the last snippet before it
    end: float  # of the first snippet after it
    dropped: int  # snippets that were cut and not worked on; what was never received is not counted
    # slow: dropped, as work did not keep up; lost: nothing came; restart: the program was not on
    reason: str

    def joined(self, later: "Gap") -> "Gap":
        """Return this gap and one that follows it as one."""
        reason = self.reason if self.reason != "slow" else later.reason
        dropped = self.dropped + later.dropped
        return Gap(start=self.start, end=later.end, dropped=dropped, reason=reason)


@dataclass(frozen=True, kw_only=True)
class Arrived:
    """A snippet with when it came; times are those of `time.monotonic`."""

    number: int  # of all snippets cut so far, those dropped too
    snippet: Snippet
    after: float | None  # time stamp of the snippet before in seconds; None: there is none
    centre_arrived: float  # its centre frame came
    arrived: float  # its last frame came
    gap: Gap | None = None  # before it


class HandOver:
    """A queue of at most `room` snippets between two threads.

    With `block`, `put` waits for room. With `newest` it never waits: where there is no room, the
    whole queue is dropped, so that long stretches are kept and not every second snippet, and the
    next snippet carries a gap that says so.
    """

    def __init__(self, room: int, policy: Policy) -> None:
        self.room, self.policy = room, policy
        self.dropped = 0
        self._waiting: deque[Arrived] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._error: BaseException | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def ended(self) -> bool:
        """Whether the queue is closed and empty, and its error has been taken."""
        return self._closed and not self._waiting and self._error is None

    def put(self, arrived: Arrived) -> bool:
        """Add a snippet; False: the queue is closed."""
        with self._changed:
            if self.policy == "block":
                self._changed.wait_for(lambda: len(self._waiting) < self.room or self._closed)
            elif len(self._waiting) >= self.room:
                gap = self._drop(arrived.snippet.seconds)
                arrived = replace(arrived, gap=gap.joined(arrived.gap) if arrived.gap else gap)
            if self._closed:
                return False
            self._waiting.append(arrived)
            self._changed.notify_all()
            return True

    def take(self, timeout: float) -> Arrived | None:
        """Return the oldest snippet; None: there is none after so many seconds.

        Raises:
            BaseException: What `close` was given, once nothing waits.
        """
        deadline = time.monotonic() + timeout
        with self._changed:
            while not self._waiting and not self._closed:
                left = deadline - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    break
            if self._waiting:
                arrived = self._waiting.popleft()
                self._changed.notify_all()
                return arrived
            if self._error is not None:
                error, self._error = self._error, None
                raise error
            return None

    def close(self, error: BaseException | None = None) -> None:
        """End the queue; `take` raises `error` after what still waits."""
        with self._changed:
            self._closed = True
            self._error = self._error or error
            self._changed.notify_all()

    def clear(self) -> Gap | None:
        """Drop what waits, and return the gap it leaves."""
        with self._changed:
            return self._drop(self._waiting[-1].snippet.seconds) if self._waiting else None

    def _drop(self, end: float) -> Gap:
        first, count = self._waiting[0], len(self._waiting)
        self.dropped += count
        start = first.snippet.seconds if first.after is None else first.after
        gap = Gap(start=start, end=end, dropped=count, reason="slow")
        for each in self._waiting:
            if each.gap is not None:
                gap = Gap(
                    start=min(each.gap.start, gap.start),
                    end=end,
                    dropped=gap.dropped + each.gap.dropped,
                    reason=each.gap.reason if gap.reason == "slow" else gap.reason,
                )
        self._waiting.clear()
        return gap


@dataclass(frozen=True, kw_only=True)
class Begin:
    """Where reading begins: at the first frame, or where an earlier run stopped."""

    snippet: int = 0  # the first that is wanted
    seconds: float | None = None  # time stamp of the snippet before it


class Reader:
    """Reads frames in a thread and hands snippets over; closes `hand_over` when no more come."""

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
        # a square round what moves would see seconds ahead
        self._source, self._cutting = frames, replace(cutting, mover_side=0)
        self._settings = settings
        self._hand_over, self._begin = hand_over, begin or Begin()
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
                gap, now = None, time.monotonic()
                if lost and before is not None:
                    gap = Gap(start=before, end=snippet.seconds, dropped=0, reason=lost)
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
