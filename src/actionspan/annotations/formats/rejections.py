"""Bad input as lines of a table: file, row, fault."""

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from actionspan.annotations.formats.times import POINT
from actionspan.errors import InputError, counted, printable
from actionspan.storage.writing import read_tsv, write_tsv

OnBadInput = Literal["skip", "fail"]
_SHOWN = 5  # lines on standard error where bad input is skipped; the table has all


@dataclass(frozen=True)
class Rejection:
    """Something that is left out of the data set.

    `row` is a line number of a table, a key path of JSON, or empty for an entire file. `video_ids`
    may each have had the rejected row as an instance: their other instances are not all.
    """

    file: str
    row: str
    reason: str
    video_ids: tuple[str, ...] = field(default=(), compare=False)

    def line(self) -> str:
        """Return the rejection as a line for people."""
        place = f"row {self.row}" if self.row.isdecimal() else self.row
        return printable(": ".join(part for part in (self.file, place, self.reason) if part))


def lines_of(rejections: Sequence[Rejection]) -> list[str]:
    """Return a line for each rejection, and before these one for all points of a file."""
    points = Counter(bad.file for bad in rejections if bad.reason.startswith(POINT))
    give = "give one by --points SECONDS (dataset.point_seconds of a run)"
    lines = [
        printable(f"{file}: {counted(count, 'point')} without a length; {give}")
        for file, count in points.items()
    ]
    return lines + [bad.line() for bad in rejections if not bad.reason.startswith(POINT)]


def write_rejections(path: Path, rejections: Iterable[Rejection]) -> None:
    """Write rejected.tsv, a line for each rejection."""
    rows = ([printable(part) for part in (bad.file, bad.row, bad.reason)] for bad in rejections)
    write_tsv(path, ("file", "row", "reason"), rows)


def read_rejections(path: Path) -> list[Rejection]:
    """Read a table that `write_rejections` wrote.

    Raises:
        InputError: The file is missing or is not such a table.
    """
    try:
        return [Rejection(row["file"], row["row"], row["reason"]) for row in read_tsv(path)]
    except KeyError as error:
        raise InputError(f"{path}: no column {error}") from None


def report(rejections: Sequence[Rejection], on_bad_input: OnBadInput, table: Path) -> None:
    """Report the rejected rows on standard error: with `skip` the first lines, with `fail` all.

    Args:
        rejections: The rejected rows.
        on_bad_input: Whether to continue or to stop.
        table: The file that has all rejections.

    Raises:
        InputError: Something was rejected and `on_bad_input` is `fail`.
    """
    if not rejections:
        return
    lines = lines_of(rejections)
    for line in lines if on_bad_input == "fail" else lines[:_SHOWN]:
        print(f"rejected {line}", file=sys.stderr)
    if on_bad_input == "fail":
        raise InputError(
            f"{len(rejections)} rejected (above); correct them, or skip them with on_bad_input skip"
        )
    if len(lines) > _SHOWN:
        more = f"{len(lines) - _SHOWN} more: {table} names each with its reason"
        print(f"rejected {more}", file=sys.stderr)
