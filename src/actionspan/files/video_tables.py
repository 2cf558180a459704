"""The rows of many videos in one table: a video takes its id and some bytes, not an object."""

from array import array
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import ArrayLike

from actionspan.arrays import Float64
from actionspan.files.scratch import ScratchRows


class VideoTables(Mapping[str, Float64]):
    """The rows (N, C) of each video, in the order of the videos; of a repeated id the last count.

    They are read-only views of a table, which lies in scratch space where it is large.
    """

    def __init__(self, videos: Iterable[tuple[str, ArrayLike]], columns: int) -> None:
        self._places: dict[str, int] = {}
        rows, ends = ScratchRows(columns), array("q", [0])
        for place, (video, given) in enumerate(videos):
            self._places[video] = place
            rows.append(np.asarray(given, np.float64).reshape(-1, columns))
            ends.append(len(rows))
        self._ends, self._rows = ends, rows.array()

    def __getitem__(self, video: str) -> Float64:
        place = self._places[video]
        return self._rows[self._ends[place] : self._ends[place + 1]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, video: object) -> bool:
        return video in self._places
