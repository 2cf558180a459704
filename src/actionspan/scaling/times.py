"""One table of the times of many training runs."""

import argparse
import csv
import io
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from actionspan.errors import InputError, printable
from actionspan.files.storage import read_json, write_tsv
from actionspan.files.text import read_utf8

SINGLE = "none"
# Communication that grows with the ranks, and communication that the ranks share.
SERVER_EXCHANGES = ("ps", "ps_worker", "ps_async")
RING_EXCHANGES = ("ring", "ps_sharded", "mpi", "gloo", "nccl", "auto", "aavg", "periodic")
EXCHANGES = (*SERVER_EXCHANGES, *RING_EXCHANGES)

PARTS = ("t1", "t2", "t3")
TIMES_COLUMNS = ("exchange", "ranks", "repeat", "seconds", *PARTS)
NEEDED_COLUMNS = ("exchange", "ranks", "seconds")
MOST_RANKS = 1_000_000
MOST_SECONDS = 1e12

TimesRow = tuple[str, int, int, float, float, float, float]
_SECONDS_KEYS = ("seconds", *(f"{part}_seconds" for part in PARTS))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument(
        "--timings", type=Path, nargs="+", required=True, help="timing.json of each run"
    )
    table = f"times.tsv: {', '.join(TIMES_COLUMNS)}; times in seconds"
    parser.add_argument("--out", type=Path, required=True, help=table)


def run(arguments: argparse.Namespace) -> None:
    """Write the table of run times."""
    write_tsv(arguments.out, TIMES_COLUMNS, times_rows(arguments.timings))


def times_rows(paths: Sequence[Path]) -> list[TimesRow]:
    """Read the timing.json of training runs: the rows of times.tsv, in the order given.

    The repeats of each exchange on each number of ranks are numbered from 1.

    Raises:
        InputError: A file is not a timing, is of a part of a run, or of a run of another length
            than the others.
    """
    rows: list[TimesRow] = []
    repeats: Counter[tuple[str, int]] = Counter()
    epochs = None
    for path in paths:
        timing = _timing(path)
        epochs = epochs or timing["epochs"]
        if timing["epochs"] != epochs:
            raise InputError(
                f"{path}: a run of {timing['epochs']} epochs, but {paths[0]} has {epochs}; "
                "only runs of the same length can share a table"
            )
        exchange, ranks = timing["exchange"], timing["ranks"]
        repeats[exchange, ranks] += 1
        seconds, t1, t2, t3 = (float(timing[key]) for key in _SECONDS_KEYS)
        rows.append((exchange, ranks, repeats[exchange, ranks], seconds, t1, t2, t3))
    return rows


def _timing(path: Path) -> dict[str, Any]:
    """Read one timing.json and check it."""
    timing: dict[str, Any] = read_json(path)
    needed = ("exchange", "ranks", "epochs", "epochs_here", *_SECONDS_KEYS)
    missing = [key for key in needed if not isinstance(timing, dict) or key not in timing]
    if missing:
        raise InputError(f"{path}: not the timing of a training run: no {missing[0]!r}")
    if timing["exchange"] not in (SINGLE, *EXCHANGES):
        raise InputError(
            f"{path}: exchange is {timing['exchange']!r}; it must be one of "
            f"{', '.join((SINGLE, *EXCHANGES))}"
        )
    for key in ("ranks", "epochs", "epochs_here"):
        least = 0 if key == "epochs_here" else 1
        if type(timing[key]) is not int or timing[key] < least:
            raise InputError(
                f"{path}: {key} is {timing[key]!r}; it must be a whole number of at least {least}"
            )
    if timing["exchange"] == SINGLE and timing["ranks"] != 1:
        raise InputError(f"{path}: exchange {SINGLE!r} runs on 1 rank, not on {timing['ranks']}")
    for key in _SECONDS_KEYS:
        value = timing[key]
        if type(value) not in (int, float) or not 0 <= value < math.inf:
            raise InputError(f"{path}: {key} is {value!r}; it must be a number of seconds")
    if not timing["seconds"]:
        raise InputError(f"{path}: seconds is 0; it must be above 0")
    if timing["epochs_here"] != timing["epochs"]:
        raise InputError(
            f"{path}: only {timing['epochs_here']} of {timing['epochs']} epochs were timed, as the "
            "run was interrupted; delete its folder and run it again from the start"
        )
    return timing


@dataclass(frozen=True, kw_only=True)
class Run:
    """The time of one training run."""

    exchange: str
    """One of `EXCHANGES`, or `none` for a run on one rank."""
    ranks: int
    """Ranks that computed, at least 1."""
    seconds: float
    """Of the complete run, above 0."""
    t1: float | None = None
    """Seconds of forward and backward passes, if measured."""
    t2: float | None = None
    """Seconds of communication, if measured."""
    t3: float | None = None
    """Seconds of start and finish, if measured."""


def read_times(path: Path) -> list[Run]:
    """Read a table with the columns exchange, ranks, seconds and perhaps t1, t2, t3.

    The separator is a tab, or a comma where the header has commas and no tab. Other columns are
    ignored, and a cell of t1, t2 or t3 may be empty.

    Raises:
        InputError: A column or a row is missing or wrong.
    """
    lines = _lines(path)
    if not lines:
        raise InputError(f"{path}: empty; columns {', '.join(NEEDED_COLUMNS)} are needed")
    header = [cell.strip().lower() for cell in lines[0][1]]
    for column in NEEDED_COLUMNS:
        if column not in header:
            raise InputError(
                f"{path}: row 1: no column {column!r}; a tab-separated header with "
                f"{', '.join(NEEDED_COLUMNS)} is needed"
            )
    repeated = [column for column in header if column and header.count(column) > 1]
    if repeated:
        raise InputError(f"{path}: row 1: two columns are named {printable(repeated[0])!r}")
    runs = []
    for number, cells in lines[1:]:
        place = f"{path}: row {number}"
        if len(cells) != len(header):
            raise InputError(f"{place}: {len(cells)} cells, the header has {len(header)}")
        runs.append(_run(place, dict(zip(header, (cell.strip() for cell in cells), strict=True))))
    if not runs:
        raise InputError(f"{path}: no rows; at least one run on 2 or more ranks is needed")
    return runs


def _lines(path: Path) -> list[tuple[int, list[str]]]:
    """Return the number (from 1) and the cells of each line that is not blank."""
    text = read_utf8(path)
    header = text.lstrip().split("\n", 1)[0]
    separator = "," if "," in header and "\t" not in header else "\t"
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        return [(reader.line_num, cells) for cells in reader if any(map(str.strip, cells))]
    except csv.Error as error:
        raise InputError(f"{path}: row {reader.line_num}: not a table: {error}") from None


def _run(place: str, cells: Mapping[str, str]) -> Run:
    """Return the run of one row."""
    exchange = cells["exchange"].lower()
    if exchange not in (SINGLE, *EXCHANGES):
        raise InputError(
            f"{place}: exchange {printable(cells['exchange'])!r} is not one of "
            f"{', '.join((SINGLE, *EXCHANGES))}"
        )
    try:
        ranks = int(cells["ranks"])
    except ValueError:
        ranks = 0
    if not 1 <= ranks <= MOST_RANKS:
        raise InputError(
            f"{place}: ranks {printable(cells['ranks'])!r} is not a whole number from 1 to "
            f"{MOST_RANKS:,}"
        )
    if exchange == SINGLE and ranks != 1:
        raise InputError(f"{place}: exchange {SINGLE!r} runs on 1 rank, not on {ranks}")
    seconds = _number(cells["seconds"])
    if not 0 < seconds <= MOST_SECONDS:
        raise InputError(
            f"{place}: seconds {printable(cells['seconds'])!r} is not a number above 0 "
            f"(at most {MOST_SECONDS:.0e})"
        )
    parts: dict[str, float] = {}
    for name in PARTS:
        if cells.get(name, ""):
            value = parts[name] = _number(cells[name])
            if not 0 <= value <= MOST_SECONDS:
                raise InputError(
                    f"{place}: {name} {printable(cells[name])!r} is not a number of seconds, "
                    "0 or more (leave the cell empty where it was not measured)"
                )
    return Run(exchange=exchange, ranks=ranks, seconds=seconds, **parts)


def _number(text: str) -> float:
    """Return the number a cell holds, NaN where it holds none."""
    try:
        return float(text)
    except ValueError:
        return math.nan
