"""What is known of a stream: before it begins, while it runs, and at its end."""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from actionspan.live.handover import Arrived


class Ended(NamedTuple):
    """How a stream ended."""

    reason: str  # finished, limit or interrupted
    seconds: float
    proposals: int | None

    @property
    def line(self) -> str:
        """One line for people."""
        found = f"{self.proposals} proposals in " if self.proposals is not None else ""
        more = "; --resume goes on" if self.reason == "interrupted" else ""
        return f"{found}{self.seconds:.1f} s, {self.reason}{more}"


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is known of a stream before its first frame."""

    shown: str  # the source as it may be written
    live: bool
    duration: float | None  # in seconds, of a file
    limit: float | None  # seconds after which it is to end
    state_seconds: float  # between two states


@dataclass(frozen=True, kw_only=True)
class Place:
    """A snippet whose actionness is still to come."""

    number: int
    seconds: float
    arrived: float


@dataclass(kw_only=True)
class Progress:
    """How far a stream is; an earlier run may have begun it."""

    made_of: str
    began: float = 0.0  # seconds since 1970 of the first frame of a live source
    snippets: int = 0  # numbered so far
    seconds: float = 0.0  # time stamp of the last one worked on
    dropped: int = 0
    submitted: int = 0
    done: int = 0
    in_flight: deque[Arrived] = field(default_factory=deque)
    unanswered: deque[Place] = field(default_factory=deque)  # no actionness yet
