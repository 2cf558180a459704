"""The proposals of one video."""

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Proposed:
    """One video's proposals, best first, and the curves they come from.

    A model gives `probabilities`, (T, 3) start, actionness and end of T equal parts of the video;
    without a model there is `motion`, (T,), its magnitude.
    """

    duration_seconds: float
    segments: NDArray[Any]  # (N, 2) starts and ends in seconds
    scores: NDArray[Any]  # (N,) higher is better
    probabilities: NDArray[Any] | None = None
    motion: NDArray[Any] | None = None
