"""One table of the times of many training runs."""

import argparse
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from actionspan.errors import InputError
from actionspan.files.storage import read_json, write_tsv
from actionspan.scaling.table import EXCHANGES, PARTS, SINGLE, TIMES_COLUMNS

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
