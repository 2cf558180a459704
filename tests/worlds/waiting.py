"""Waiting until something holds, however busy the machine is, and until a process has ended."""

import time
from collections.abc import Callable
from pathlib import Path


def eventually(
    holds: Callable[[], object],
    seconds: float = 60.0,
    otherwise: Callable[[], object] = lambda: "it never came to be",
) -> None:
    """Wait until something holds; fail after some seconds with what `otherwise` returns."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, otherwise()
        time.sleep(0.01)


def gone(process: int | str) -> bool:
    """Return whether a process has ended; a zombie has, whenever init clears it away."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"
