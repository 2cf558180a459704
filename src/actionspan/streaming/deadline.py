"""Whether anything still moves."""

import math
import time
from collections.abc import Sequence


class Deadline:
    """Notes when the counts of what was done changed last.

    Args:
        seconds: Without a change after which it has passed.

    Raises:
        ValueError: The seconds are not above 0 and finite.
    """

    def __init__(self, seconds: float) -> None:
        if not (0 < seconds < math.inf):
            raise ValueError(f"stall_seconds {seconds}: a number above 0")
        self.seconds = seconds
        self._seen: list[float] = []
        self.restart()

    def restart(self) -> None:
        """Begin to count now: there is new work."""
        self._since = time.monotonic()

    def left(self, counts: Sequence[float]) -> float:
        """Return the seconds until it passes, 0 once it has."""
        if list(counts) != self._seen:
            self._seen = list(counts)
            self.restart()
        return max(0.0, self.seconds - (time.monotonic() - self._since))
