"""Waiting until something holds, however busy the machine is."""

import time
from collections.abc import Callable


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
