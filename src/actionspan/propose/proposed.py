"""What proposing for one video returns."""

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Proposed:
    """One video's proposals, best first, and the curves they rest on.

    Attributes:
        duration_seconds: Of the video.
        segments: (N, 2) starts and ends in seconds.
        scores: (N,) higher is better.
        probabilities: (T, 3) start, actionness and end of T equal parts of the video, if a model
            made them.
        motion: (T,) magnitude of motion, if motion was grouped without a model.
    """

    duration_seconds: float
    segments: Array
    scores: Array
    probabilities: Array | None = None
    motion: Array | None = None
