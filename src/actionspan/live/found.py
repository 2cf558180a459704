"""All proposals of a stream in little memory, and its chapters, however long it is."""

from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from actionspan.files.storage import write_text
from actionspan.proposals.chapters import choose_chapters, webvtt
from actionspan.proposals.segments import Row
from actionspan.proposals.settings import ChapterSettings

MOST = 100_000  # proposals in the tables: the best; a camera finds some thousands an hour
_SPARE = 10_000  # beyond them, before the worst are dropped
_NUMBERS = 5  # of a proposal: start, end, score, label's number, label's score
_SETTLED_SECONDS = 600.0  # chapters that ended so long ago are not chosen again


class Found:
    """The best proposals of a stream, 40 bytes each."""

    def __init__(self) -> None:
        self.count = 0  # of all, those dropped too
        self.labelled = False
        self._numbers = array("d")
        self._labels: dict[str, int] = {}

    def add(self, row: Row) -> None:
        """Add a proposal."""
        self.count += 1
        label, label_score = -1.0, 0.0
        if "label" in row:
            self.labelled = True
            label = float(self._labels.setdefault(row["label"], len(self._labels)))
            label_score = row["label_score"]
        self._numbers.extend((*row["segment"], row["score"], label, label_score))
        if len(self._numbers) > _NUMBERS * (MOST + _SPARE):
            kept = np.sort(self._order()[:MOST])
            self._numbers = array("d", self._table()[kept].tobytes())

    def rows(self) -> Iterator[Row]:
        """Yield the proposals, best first; of equal scores the earliest."""
        names = list(self._labels)
        table = self._table()
        for place in self._order()[:MOST]:
            start, end, score, label, label_score = table[place].tolist()
            row = {"score": score, "segment": [start, end]}
            if label >= 0:
                row |= {"label": names[int(label)], "label_score": label_score}
            yield row

    def _table(self) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
        # a copy: an array that numpy looks at cannot grow
        return np.array(self._numbers, np.float64).reshape(-1, _NUMBERS)

    def _order(self) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        order: np.ndarray[tuple[int], np.dtype[np.int64]]
        order = np.argsort(-self._table()[:, 2], kind="stable")
        return order


class LiveChapters:
    """WebVTT chapters: the best proposals that do not overlap, of the last ten minutes or more.

    Those before are settled. No score is too low, as the best of the video may be yet to come.
    """

    def __init__(self) -> None:
        self._settled = ""  # cues
        self._until = 0.0  # seconds: where the last of them ends
        self._recent: list[Row] = []
        self._newest = 0.0

    def add(self, row: Row) -> None:
        """Add a proposal."""
        start, end = row["segment"]
        self._newest = max(self._newest, end)
        if start >= self._until:
            self._recent.append(row)
        if self._recent and self._newest - self._recent[0]["segment"][1] > 2 * _SETTLED_SECONDS:
            self._settle()

    def write(self, path: Path) -> None:
        """Write all chapters, atomically."""
        text = webvtt(self._recent, self._settings())
        write_text(path, text.replace("WEBVTT\n", "WEBVTT\n" + self._settled, 1))

    def _settle(self) -> None:
        horizon = self._newest - _SETTLED_SECONDS
        chosen = [row for _, row in choose_chapters(self._recent, self._settings())]
        old = [row for row in chosen if row["segment"][1] < horizon]
        self._settled += webvtt(old, self._settings()).removeprefix("WEBVTT\n")
        self._until = max([self._until, *(row["segment"][1] for row in old)])
        self._recent = [
            row
            for row in self._recent
            if row["segment"][1] >= horizon and row["segment"][0] >= self._until
        ]

    def _settings(self) -> ChapterSettings:
        return ChapterSettings(chapters=max(1, len(self._recent)), share=0.0, shortest=0.0)
