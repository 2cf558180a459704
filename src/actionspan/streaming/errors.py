"""Failures of a stage, with their place; and reports of a stall or the end of a process."""

import math
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager


class StageError(RuntimeError):
    """A stage failed. The message is one line; the cause or a note holds the traceback.

    `stage` counts from 0, and `sample` is the one that the stage held; -1: none.
    """

    def __init__(self, stage: int, stages: int, sample: int, what: str) -> None:
        super().__init__(stage, stages, sample, what)
        self.stage, self.stages, self.sample, self.what = stage, stages, sample, what

    def __str__(self) -> str:
        held = f", sample {self.sample}" if self.sample >= 0 else ""
        return f"stage {self.stage + 1} of {self.stages}{held}: {self.what}"


class StallError(StageError):
    """A stage gave no sign of life before the deadline."""


class CaptureError(StageError, ValueError):
    """A stage does in a step what no CUDA graph can repeat."""


class LinkClosedError(Exception):
    """The other end of a link is gone: a neighbour ended, and reports the reason itself."""


class Deadline:
    """Notes the time of the last change of the counts of work.

    Args:
        seconds: Without a change after which it has passed.

    Raises:
        ValueError: The seconds are not above 0 and finite.
    """

    def __init__(self, seconds: float) -> None:
        if not (0 < seconds < math.inf):
            raise ValueError(f"stall_seconds {seconds}: a number above 0")
        self.seconds = seconds
        self._seen: list[list[float]] = []
        self.restart()

    def restart(self) -> None:
        """Restart the deadline: there is new work."""
        self._since = time.monotonic()

    def left(self, counts: list[list[float]]) -> float:
        """Return the seconds until it passes, 0 once it has."""
        if counts != self._seen:
            self._seen = counts
            self.restart()
        return max(0.0, self.seconds - (time.monotonic() - self._since))


UNGUARDED = 4  # exit status


def death(status: int | None) -> str:
    """Return how a process ended, by its exit status."""
    if status == UNGUARDED:
        what = "its process runs the whole program, as it must import it for classes and functions"
        return f'{what}; put the work of the program under `if __name__ == "__main__":`'
    if status is not None and status < 0:
        return f"its process was ended by {signal.Signals(-status).name}"
    return f"its process ended with status {status}"


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back while processes start: they would inherit it before they ignore it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
