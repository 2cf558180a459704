"""Snippets on their way from the reading to the working thread, and gaps between them."""

import threading
from collections import deque
from dataclasses import dataclass, replace
from functools import reduce

from actionspan.live.settings import Policy
from actionspan.video.snippets import Snippet


@dataclass(frozen=True, kw_only=True)
class Gap:
    """A stretch of the stream without results."""

    start: float  # seconds: time of the last snippet before it
    end: float  # of the first snippet after it
    dropped: int  # snippets that were cut and not worked on, without those never received
    # slow: work did not keep up; lost: no frames came; restart: the program was not running
    reason: str

    def joined(self, later: "Gap | None") -> "Gap":
        """Return this gap and one that follows it as one."""
        if later is None:
            return self
        reason = self.reason if self.reason != "slow" else later.reason
        dropped = self.dropped + later.dropped
        return Gap(start=self.start, end=later.end, dropped=dropped, reason=reason)


@dataclass(frozen=True, kw_only=True)
class Arrived:
    """A snippet and its times of arrival, by `time.monotonic`."""

    number: int  # of all snippets cut so far, those dropped too
    snippet: Snippet
    after: float | None  # time stamp of the snippet before in seconds; None: there is none
    centre_arrived: float  # its centre frame came
    arrived: float  # its last frame came
    gap: Gap | None = None  # before it

    @property
    def as_gap(self) -> Gap:
        """The gap that the snippet leaves if it is dropped."""
        end = self.snippet.seconds
        start = end if self.after is None else self.after
        own = Gap(start=start, end=end, dropped=1, reason="slow")
        return self.gap.joined(own) if self.gap else own


class HandOver:
    """A queue of at most `room` snippets between two threads.

    With `block`, `put` waits for room. With `newest` it never waits: where room is lacking, the
    whole queue is dropped, so that long stretches are kept and not every second snippet, and the
    next snippet carries a gap that marks it.
    """

    def __init__(self, room: int, policy: Policy) -> None:
        self.room, self.policy = room, policy
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
                gap = replace(self._drop(), end=arrived.snippet.seconds)
                arrived = replace(arrived, gap=gap.joined(arrived.gap))
            if self._closed:
                return False
            self._waiting.append(arrived)
            self._changed.notify_all()
            return True

    def take(self, timeout: float) -> Arrived | None:
        """Return the oldest snippet; None: none has come within `timeout` seconds.

        Raises:
            BaseException: What `close` was given, once nothing waits.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed, timeout)
            if self._waiting:
                self._changed.notify_all()
                return self._waiting.popleft()
            if self._error is not None:
                error, self._error = self._error, None
                raise error
            return None

    def close(self, error: BaseException | None = None) -> None:
        """End the queue; `take` raises `error` after the last item."""
        with self._changed:
            self._closed = True
            self._error = self._error or error
            self._changed.notify_all()

    def clear(self) -> Gap | None:
        """Drop the waiting items, and return the gap they leave."""
        with self._changed:
            return self._drop() if self._waiting else None

    def _drop(self) -> Gap:
        gap = reduce(Gap.joined, [each.as_gap for each in self._waiting])
        self._waiting.clear()
        return gap
