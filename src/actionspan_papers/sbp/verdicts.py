"""What the claims of paper 004 share: cells of tables as estimates, and rules of comparison."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from actionspan_papers.estimates import Estimate

Row = Mapping[str, str]
OURS = "not in the paper"


def cell(rows: Iterable[Row], column: str, **chosen: object) -> Estimate | str:
    """Return the estimate in a column of the row that has these cells, or why there is none."""
    wanted = {name: str(value) for name, value in chosen.items()}
    for row in rows:
        if all(row[name] == value for name, value in wanted.items()):
            if row.get("seeds") == "1":
                return f"One seed of {_words(wanted)} says nothing about the next."
            numbers = [row.get(f"{column}{end}", "") for end in ("", "_low", "_high")]
            if not all(numbers):
                return f"There is no interval of {_words(wanted)}."
            value, low, high = map(float, numbers)
            return Estimate(value=value, low=low, high=high, form="+.2f")
    return f"There are no runs of {_words(wanted)}."


def _words(wanted: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in wanted.items())


def at_most(lost: float, difference: Estimate | str) -> Estimate | str:
    """Return what is above 0 where a difference is above -lost: no worse, but for a margin."""
    if isinstance(difference, str):
        return difference
    value, low, high = (lost + each for each in (difference.value, difference.low, difference.high))
    return replace(difference, value=value, low=low, high=high)


def turned(difference: Estimate | str) -> Estimate | str:
    """Return the difference the other way round."""
    if isinstance(difference, str):
        return difference
    return replace(difference, value=-difference.value, low=-difference.high, high=-difference.low)


def only_number(rows: Iterable[Row], column: str, **chosen: object) -> float:
    """Return a number that stands in one row, NaN where there is no such row or number."""
    wanted = {name: str(value) for name, value in chosen.items()}
    for row in rows:
        if all(row[name] == value for name, value in wanted.items()):
            return float(row.get(column) or "nan")
    return math.nan
