"""Bad input as lines of a table: which file, which row, what is wrong; and what happens then."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from actionspan.errors import InputError, printable
from actionspan.files.storage import write_tsv

OnBadInput = Literal["skip", "fail"]
SHOWN = 5
"""Lines that go to standard error where bad input is skipped; the table has them all."""


@dataclass(frozen=True)
class Rejection:
    """One thing that is left out of the data set.

    `row` is a line number of a table, a key path of JSON, or empty where a whole file is meant.
    """

    file: str
    row: str
    reason: str

    def line(self) -> str:
        """Return the rejection as one line for people."""
        place = f"row {self.row}: " if self.row.isdecimal() else f"{self.row}: " if self.row else ""
        return printable(f"{self.file}: {place}{self.reason}")


def write_rejections(path: Path, rejections: Iterable[Rejection]) -> None:
    """Write rejected.tsv, one line for each rejection."""
    write_tsv(
        path,
        ("file", "row", "reason"),
        ([printable(part) for part in (bad.file, bad.row, bad.reason)] for bad in rejections),
    )


def report(rejections: Sequence[Rejection], on_bad_input: OnBadInput, table: Path) -> None:
    """Say on standard error what was rejected.

    Args:
        rejections: What was rejected.
        on_bad_input: `skip` shows the first lines and goes on; `fail` shows all and stops.
        table: Where all of them are written.

    Raises:
        InputError: Something was rejected and `on_bad_input` is `fail`.
    """
    if not rejections:
        return
    shown = rejections if on_bad_input == "fail" else rejections[:SHOWN]
    for bad in shown:
        print(f"rejected {bad.line()}", file=sys.stderr)
    if on_bad_input == "fail":
        raise InputError(
            f"{len(rejections)} rejected (above); mend them, or leave them out by on_bad_input skip"
        )
    if len(rejections) > SHOWN:
        print(
            f"rejected {len(rejections) - SHOWN} more: {table} names each with its reason",
            file=sys.stderr,
        )
