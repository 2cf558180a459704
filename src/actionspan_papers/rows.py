"""Tables of experiments, read again: their rows, and means of them over seeds."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from actionspan.arrays import Float64
from actionspan.errors import InputError
from actionspan.files.storage import read_tsv
from actionspan_papers.estimates import Estimate, over_seeds

Row = Mapping[str, str]


def number(value: float, form: str = ".6g") -> str:
    """Return a number as tables have it, empty where it is NaN."""
    return "" if math.isnan(value) else f"{value:{form}}"


def values(rows: Iterable[Row], column: str, **chosen: object) -> Float64:
    """Return a column of the rows that have these cells, in their order, NaN where it is empty."""
    wanted = {name: str(value) for name, value in chosen.items()}
    return np.array(
        [
            float(row[column] or "nan")
            for row in rows
            if all(row[name] == value for name, value in wanted.items())
        ]
    )


def estimate(
    rows: Sequence[Row],
    column: str,
    confidence: float,
    chosen: Mapping[str, object],
    form: str = ".3f",
) -> Estimate:
    """Return the mean over the seeds of the chosen rows and its interval."""
    found = values(rows, column, **chosen)
    if not len(found) or np.isnan(found).any():
        return Estimate(why_not="none", form=form)
    return over_seeds([found], confidence, form=form)


def distinct(rows: Iterable[Row], column: str) -> list[str]:
    """Return the different cells of a column, in the order of their first rows."""
    return list(dict.fromkeys(row[column] for row in rows))


def read_rows(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """Read a table of an experiment.

    Raises:
        InputError: It has no row, or lacks one of the columns.
    """
    rows = read_tsv(path)
    missing = [column for column in columns if not rows or column not in rows[0]]
    if missing:
        raise InputError(f"{path}: no column {missing[0]!r}: not a table of this paper")
    return rows
