"""The proposals of one video."""

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from actionspan.proposals.labels import label_rows
from actionspan.proposals.writing import Row, result_rows


@dataclass(frozen=True, kw_only=True)
class Proposed:
    """One video's proposals, best first, and the curves they come from.

    A model gives `probabilities`, (T, 3) start, actionness and end of T equal parts of the video;
    without a model there is `motion`, (T,), its magnitude. A model with a classifier gives the K
    `classes`, and `class_scores` of each proposal.
    """

    duration_seconds: float
    segments: NDArray[Any]  # (N, 2) starts and ends in seconds
    scores: NDArray[Any]  # (N,) higher is better
    probabilities: NDArray[Any] | None = None
    motion: NDArray[Any] | None = None
    classes: tuple[str, ...] = ()
    class_scores: NDArray[Any] | None = None  # (N, K); each row adds up to 1

    def rows(self) -> list[Row]:
        """Return the proposals in ActivityNet result form, with labels where there are classes."""
        rows = result_rows(self.segments, self.scores)
        if self.class_scores is None:
            return rows
        return label_rows(rows, self.classes, self.class_scores)
