"""A deadline for exchanges: the job ends with the missing rank named, and never hangs."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from actionspan.jobs.launcher import orphaned
from actionspan.parallel.communicator import Communicator, received_notes, tag_of

STALLED = 75  # exit status: a failure that may be over when the job is started again
_STOPPED_PERIODS = 5  # a watchdog that wakes up so late was not running
_TAG = tag_of(0, "control")
GRACE_SECONDS = 8.0  # the lowest waiting rank speaks first; others end the job if it cannot


class Watchdog:
    """Ends the job when an exchange waits too long, and names the missing ranks.

    A thread looks at what its rank is waiting for. After half the deadline, or when another rank
    does so, it reports to all other ranks, again and again, that it waits. At the deadline it knows
    who else waits; the silent ranks never came, whether they hang, compute or were stopped. This
    works for every exchange, also inside a library, and costs two assignments an exchange. Time in
    which this process itself did not run (Ctrl-Z, a suspended job) does not count.

    It also ends a rank when its launcher was killed, as nobody else would. Nothing else may use its
    communicator. `seconds` is the deadline.
    """

    def __init__(self, comm: Communicator, seconds: float) -> None:
        self.comm, self.seconds = comm, seconds
        self.period = min(0.5, seconds / 10)
        self._recent = 3 * self.period + 1.0  # a rank heard of within these seconds still waits
        self._waiting: tuple[float, str, float] | None = None  # since when, for what, how long
        self._stop = threading.Event()
        self._sends: list[Any] = []
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._thread.start()

    @contextmanager
    def waiting(self, what: str, patience: float = 0.0) -> Iterator[None]:
        """Watch a block that waits for `what`, e.g. a bucket of other ranks.

        `patience` is the deadline in seconds where it is above the watchdog's own.
        """
        seconds = max(self.seconds, patience)
        before, self._waiting = self._waiting, (time.monotonic(), what, seconds)
        try:
            yield
        finally:
            self._waiting = before

    def close(self) -> None:
        """Stop watching."""
        self._stop.set()
        self._thread.join()
        self.comm.Free()

    def _watch(self) -> None:
        last: dict[int, float] = {}
        looked = since = time.monotonic()
        while not self._stop.wait(self.period):
            if orphaned() and self.comm.Get_size() > 1:
                self._leave()
            # how long this rank has been waiting, not counting time in which it did not run
            before, looked = looked, time.monotonic()
            if looked - before > _STOPPED_PERIODS * self.period:
                since = looked
            for rank in received_notes(self.comm, _TAG):
                last[rank] = time.monotonic()
            current = self._waiting
            if current is None:
                continue
            waited = time.monotonic() - max(current[0], since)

            # report to the others, and end the job at the deadline
            others_wait = any(looked - when < self._recent for when in last.values())
            if waited < current[2] / 2 and not others_wait:
                continue
            self._report()
            if waited >= current[2]:
                now = time.monotonic()
                others = set(range(self.comm.Get_size())) - {self.comm.Get_rank()}
                waiting = {rank for rank in others if now - last.get(rank, -1e9) < self._recent}
                self._end(current[1], waited, sorted(others - waiting), sorted(waiting))

    def _report(self) -> None:
        self._sends = [request for request in self._sends if not request.Test()]
        if len(self._sends) > 8 * self.comm.Get_size():
            return  # some rank no longer listens
        for rank in range(self.comm.Get_size()):
            if rank != self.comm.Get_rank():
                self._sends.append(self.comm.Isend(b"w", rank, _TAG))

    def _leave(self) -> None:
        try:
            line = f"actionspan: rank {self.comm.Get_rank()} ends: its launcher is gone"
            print(line, file=sys.stderr, flush=True)  # perhaps to nobody
        finally:
            os._exit(STALLED)  # an abort would ask the launcher to end the job

    def _end(self, what: str, waited: float, missing: list[int], waiting: list[int]) -> None:
        rank = self.comm.Get_rank()
        if waiting and min(waiting) < rank:
            time.sleep(GRACE_SECONDS)  # a lower rank reports it
        who = f"all ranks wait in exchanges that do not match; rank {rank} in {what}"
        if missing:
            ranks = f"rank{'s' * (len(missing) > 1)} {', '.join(map(str, missing))}"
            who = f"{ranks} did not come to the exchange of {what}"
        line = (
            f"actionspan: stalled: {who}; waited {waited:.0f} s. The job ends; "
            "run it again to resume from the last checkpoint"
        )
        try:
            print(line, file=sys.stderr, flush=True)
        finally:
            self.comm.Abort(STALLED)


@contextmanager
def watched(
    comm: Communicator | None, seconds: float
) -> Iterator[Callable[[str], AbstractContextManager[None]]]:
    """Yield a watchdog's `waiting` for a block that all ranks enter; it does nothing without ranks.

    `seconds` is the deadline.
    """
    if comm is None:
        yield lambda what: nullcontext()
        return
    watchdog = Watchdog(comm.Dup(), seconds)
    try:
        yield watchdog.waiting
    finally:
        watchdog.close()
