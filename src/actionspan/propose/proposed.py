"""The proposals of one video."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from actionspan.proposals.chapters import choose_chapters
from actionspan.proposals.segments import Row, label_rows, result_rows
from actionspan.proposals.settings import ChapterSettings

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, kw_only=True)
class Proposed:
    """One video's proposals, best first, and the curves they come from.

    A model gives `probabilities`, (T, 3) start, actionness and end of T equal parts of the video;
    without a model there is `motion`, (T,), its magnitude. A model with a classifier gives the K
    `classes`, and `class_scores` of each proposal. The model span gives the distinct `events` for a
    reader too, with the chance of each to be right at tIoU 0.5; other models have None.
    """

    duration_seconds: float
    segments: NDArray[Any]  # (N, 2) starts and ends in seconds
    scores: NDArray[Any]  # (N,) higher is better
    probabilities: NDArray[Any] | None = None
    motion: NDArray[Any] | None = None
    classes: tuple[str, ...] = ()
    class_scores: NDArray[Any] | None = None  # (N, K); each row adds up to 1
    events: NDArray[Any] | None = None  # (E, 2) in seconds, best first
    chances: NDArray[Any] | None = None  # (E,) 0…1
    event_classes: NDArray[Any] | None = None  # (E, K)

    def rows(self) -> list[Row]:
        """Return the proposals in ActivityNet result form, with labels where there are classes."""
        return self._labelled(self.segments, self.scores, self.class_scores)

    def event_rows(self) -> list[Row]:
        """Return the events in the same form; without any, proposals that do not overlap."""
        if self.events is None:
            chosen = choose_chapters(self.rows(), ChapterSettings())
            return [row for _, row in sorted(chosen, key=lambda ranked: ranked[0])]
        return self._labelled(self.events, self.chances, self.event_classes)

    def to_frame(self) -> "pandas.DataFrame":
        """Return the proposals as a table, best first.

        Its columns are `start_seconds`, `end_seconds` and `score`, and `label` and `label_score`
        where there are classes.

        Raises:
            ImportError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise ImportError("to_frame() needs pandas: pip install pandas") from None
        rows = self.rows()
        columns = ["start_seconds", "end_seconds", "score"]
        columns += ["label", "label_score"] if self.classes else []
        cells = [[*row["segment"], *(row[name] for name in columns[2:])] for row in rows]
        return pandas.DataFrame(cells, columns=columns)

    def _labelled(self, segments: Any, scores: Any, class_scores: Any) -> list[Row]:
        rows = result_rows(segments, scores)
        return rows if class_scores is None else label_rows(rows, self.classes, class_scores)
