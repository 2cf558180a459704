"""Proposals in ActivityNet result form (JSON) and as a table (CSV)."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import ArrayLike

from actionspan.files.storage import atomic_path
from actionspan.files.text import safe_cell

VERSION = "actionspan 1"
_CSV_COLUMNS = ("video_id", "rank", "start_seconds", "end_seconds", "score")
_LABEL_COLUMNS = ("label", "label_score")

Row = Mapping[str, Any]  # {"score": number, "segment": [start, end]} and what else a file gives


def result_rows(segments: ArrayLike, scores: ArrayLike) -> list[Row]:
    """Return one video's (K, 2) segments in seconds and (K,) scores in ActivityNet result form."""
    pairs = zip(np.asarray(scores).tolist(), np.asarray(segments).tolist(), strict=True)
    return [{"score": score, "segment": segment} for score, segment in pairs]


def write_proposals(
    results: Iterable[tuple[str, Iterable[Row]]],
    json_path: Path,
    csv_path: Path | None = None,
    *,
    labelled: bool = False,
) -> None:
    """Write the proposals of many videos, one video at a time and atomically.

    Args:
        results: Video ids with their proposals, best first.
        json_path: ActivityNet result form, one video a line.
        csv_path: A table with each proposal's rank, 1 the best; None: no table.
        labelled: Whether the table has the rows' labels and their scores.
    """
    with proposal_files(json_path, csv_path, labelled=labelled) as write:
        for video_id, rows in results:
            write(video_id, rows)


@contextmanager
def proposal_files(
    json_path: Path, csv_path: Path | None = None, *, labelled: bool = False
) -> Iterator[Callable[[str, Iterable[Row]], None]]:
    """Yield a function that writes the next video; the arguments are those of `write_proposals`."""
    with ExitStack() as stack:

        def open_output(path: Path) -> TextIO:
            partial = stack.enter_context(atomic_path(path))
            return stack.enter_context(partial.open("w", newline="", encoding="utf-8"))

        file = open_output(json_path)
        table = None
        more = _LABEL_COLUMNS if labelled else ()
        if csv_path is not None:
            table = csv.writer(open_output(csv_path), lineterminator="\n")
            table.writerow((*_CSV_COLUMNS, *more))
        file.write(f'{{"version": {json.dumps(VERSION)}, "results": {{')
        separator = "\n"

        def write(video_id: str, rows: Iterable[Row]) -> None:
            nonlocal separator
            file.write(f"{separator}{json.dumps(video_id)}: [")
            separator = ",\n"
            for rank, row in enumerate(rows, start=1):
                file.write(f"{', ' * (rank > 1)}{json.dumps(row)}")
                if table is not None:
                    cells = (video_id, rank, *row["segment"], row["score"])
                    labels = (row[name] for name in more)
                    table.writerow([safe_cell(cell) for cell in (*cells, *labels)])
            file.write("]")

        yield write
        file.write('\n}, "external_data": {}}\n')
