"""From the thread that reads to the loop that works: whole snippets, a bounded number of them."""

import threading
import time
from collections import deque
from dataclasses import dataclass, replace

from actionspan.live.settings import Policy
from actionspan.video.snippets import Snippet


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
    """A queue of snippets between two threads.

    By `block` whoever puts waits for room. By `newest` nobody waits: where there is no room, all
    that waits is dropped at once, so that what is kept are long stretches and not every second
    snippet, and a gap that says so goes with the next snippet.

    Args:
        room: How many snippets wait at most.
        policy: `block` or `newest`.
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
        """Whether nothing waits and nothing will come; an error has yet to be taken."""
        return self._closed and not self._waiting and self._error is None

    def put(self, arrived: Arrived) -> bool:
        """Put in a snippet; False: nobody will take it, as the queue is closed."""
        with self._changed:
            if self.policy == "block":
                self._changed.wait_for(lambda: len(self._waiting) < self.room or self._closed)
            elif len(self._waiting) >= self.room:
                arrived = self._drop_for(arrived)
            if self._closed:
                return False
            self._waiting.append(arrived)
            self._changed.notify_all()
            return True

    def take(self, timeout: float) -> Arrived | None:
        """Return the snippet that waits longest; None: there is none after so many seconds.

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
        """Say that no more comes; `error` is raised by `take` after what still waits."""
        with self._changed:
            self._closed = True
            self._error = self._error or error
            self._changed.notify_all()

    def clear(self) -> Gap | None:
        """Drop what waits, and return the gap it leaves."""
        with self._changed:
            gap = self._dropped_now(self._waiting[-1].snippet.seconds) if self._waiting else None
            self._waiting.clear()
            return gap

    def _drop_for(self, newer: Arrived) -> Arrived:
        gap = self._dropped_now(newer.snippet.seconds)
        self._waiting.clear()
        return replace(newer, gap=gap.joined(newer.gap) if newer.gap else gap)

    def _dropped_now(self, end: float) -> Gap:
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
        return gap
