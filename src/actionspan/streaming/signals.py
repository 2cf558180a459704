"""Signals and processes: how one ended, and no Ctrl-C while one starts."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

UNGUARDED = 4  # exit status


def death(status: int | None) -> str:
    """Return how a process ended, by its exit status."""
    if status == UNGUARDED:
        what = "its process runs the whole program, as it must import it for classes and functions"
        return f'{what}; put what the program does under `if __name__ == "__main__":`'
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
