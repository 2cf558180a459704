"""One table of the times of many training runs."""

import argparse
import csv
import io
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from actionspan.errors import InputError, printable
from actionspan.storage.text import read_utf8
from actionspan.storage.writing import read_json, write_tsv

SINGLE = "none"
# Communication that grows with the ranks, and communication that the ranks share.
SERVER_EXCHANGES = ("ps", "ps_worker", "ps_async")
RING_EXCHANGES = ("ring", "ps_sharded", "mpi", "gloo", "nccl", "auto", "aavg", "periodic")
EXCHANGES = (*SERVER_EXCHANGES, *RING_EXCHANGES)

PARTS = ("t1", "t2", "t3")
TIMES_COLUMNS = ("exchange", "ranks", "repeat", "seconds", *PARTS)
_NEEDED = ("exchange", "ranks", "seconds")
_MOST_RANKS = 1_000_000
_MOST_SECONDS = 1e12


@dataclass(frozen=True, kw_only=True)
class Run:
    """The time of one training run, in seconds; `t1`, `t2` and `t3` if they were measured."""

    exchange: str  # one of `EXCHANGES`, or `none` for a run on one rank
    ranks: int  # that computed, at least 1
    seconds: float  # of the complete run, above 0
    t1: float | None = None  # forward and backward passes
    t2: float | None = None  # communication
    t3: float | None = None  # start and finish


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


def times_rows(paths: Sequence[Path]) -> list[tuple[Any, ...]]:
    """Read the timing.json of training runs: the rows of times.tsv, in the order given.

    The repeats of each exchange on each number of ranks are numbered from 1.

    Raises:
        InputError: A file is not a timing, is of a part of a run, or of a run of another length
            than the others.
    """
    rows: list[tuple[Any, ...]] = []
    repeats: Counter[tuple[str, int]] = Counter()
    first = 0
    for path in paths:
        run, epochs = _timing(path)
        first = first or epochs
        if epochs != first:
            line = f"a run of {epochs} epochs, but {paths[0]} has {first}"
            raise InputError(f"{path}: {line}; only runs of the same length can share a table")
        place = run.exchange, run.ranks
        repeats[place] += 1
        rows.append((*place, repeats[place], run.seconds, run.t1, run.t2, run.t3))
    return rows


def _timing(path: Path) -> tuple[Run, int]:
    """Return the run of a timing.json and its number of epochs."""
    timing: dict[str, Any] = read_json(path)
    keys = {"exchange": "exchange", "ranks": "ranks", "seconds": "seconds"}
    keys |= {part: f"{part}_seconds" for part in PARTS}
    needed = (*keys.values(), "epochs", "epochs_here")
    missing = [key for key in needed if not isinstance(timing, dict) or key not in timing]
    if missing:
        raise InputError(f"{path}: not the timing of a training run: no {missing[0]!r}")
    # as cells of a table: true, "9" and 2.0 are not numbers of ranks there either
    cells = {name: json.dumps(timing[key]) for name, key in keys.items()}
    run = _run(str(path), cells | {"exchange": str(timing["exchange"])})
    epochs, here = timing["epochs"], timing["epochs_here"]
    if type(epochs) is not int or epochs < 1:
        raise InputError(f"{path}: epochs is {epochs!r}; it must be a whole number above 0")
    if here != epochs:
        line = f"only {here} of {epochs} epochs were timed"
        cure = "delete its folder and run it again from the start"
        raise InputError(f"{path}: {line}, as the run was interrupted; {cure}")
    return run, epochs


def read_times(path: Path) -> list[Run]:
    """Read a table with the columns exchange, ranks, seconds and perhaps t1, t2, t3.

    The separator is a tab, or a comma where the header has commas and no tab. Other columns are
    ignored, and a cell of t1, t2 or t3 may be empty.

    Raises:
        InputError: A column or a row is missing or wrong.
    """
    lines = _lines(path)
    needed = ", ".join(_NEEDED)
    if not lines:
        raise InputError(f"{path}: empty; columns {needed} are needed")
    header = [cell.lower() for cell in lines[0][1]]
    for column in _NEEDED:
        if column not in header:
            line = f"no column {column!r}; a tab-separated header with {needed} is needed"
            raise InputError(f"{path}: row 1: {line}")
    repeated = [column for column in header if column and header.count(column) > 1]
    if repeated:
        raise InputError(f"{path}: row 1: two columns are named {printable(repeated[0])!r}")
    runs = []
    for number, cells in lines[1:]:
        place = f"{path}: row {number}"
        if len(cells) != len(header):
            raise InputError(f"{place}: {len(cells)} cells, the header has {len(header)}")
        runs.append(_run(place, dict(zip(header, cells, strict=True))))
    if not runs:
        raise InputError(f"{path}: no rows; at least one run on 2 or more ranks is needed")
    return runs


def _lines(path: Path) -> list[tuple[int, list[str]]]:
    """Return the number (from 1) and the stripped cells of each line that is not blank."""
    text = read_utf8(path)
    header = text.lstrip().split("\n", 1)[0]
    separator = "," if "," in header and "\t" not in header else "\t"
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        stripped = ([cell.strip() for cell in cells] for cells in reader)
        return [(reader.line_num, cells) for cells in stripped if any(cells)]
    except csv.Error as error:
        raise InputError(f"{path}: row {reader.line_num}: not a table: {error}") from None


def _run(place: str, cells: Mapping[str, str]) -> Run:
    shown = {name: repr(printable(cell)) for name, cell in cells.items()}
    exchange = cells["exchange"].lower()
    try:
        ranks = int(cells["ranks"])
    except ValueError:
        ranks = 0
    if not 1 <= ranks <= _MOST_RANKS:
        wanted = f"a whole number from 1 to {_MOST_RANKS:,}"
        raise InputError(f"{place}: ranks {shown['ranks']} is not {wanted}")
    known = (SINGLE, *EXCHANGES)
    if exchange not in known:
        raise InputError(f"{place}: exchange {shown['exchange']} is not one of {', '.join(known)}")
    if exchange == SINGLE and ranks != 1:
        raise InputError(f"{place}: exchange {SINGLE!r} runs on 1 rank, not on {ranks}")
    seconds = _number(cells["seconds"])
    if not 0 < seconds <= _MOST_SECONDS:
        wanted = f"a number above 0 (at most {_MOST_SECONDS:.0e})"
        raise InputError(f"{place}: seconds {shown['seconds']} is not {wanted}")
    parts = {name: _number(cells[name]) for name in PARTS if cells.get(name)}
    for name, value in parts.items():
        if not 0 <= value <= _MOST_SECONDS:
            line = f"{name} {shown[name]} is not a number of seconds, 0 or more"
            raise InputError(f"{place}: {line} (empty where it was not measured)")
    return Run(exchange=exchange, ranks=ranks, seconds=seconds, **parts)


def _number(text: str) -> float:
    """Return the number a cell holds, NaN where it holds none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


Ratios = Mapping[str, Mapping[int, Sequence[float]]]
"""By exchange (`none` among them) and number of ranks, the speed ratio of each run."""
