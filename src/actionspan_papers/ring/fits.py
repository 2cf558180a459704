"""Write paper 000's fits as a table: the printed ones, what they imply, and those of our runs."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from actionspan.scaling.paper_fit import paper_fit
from actionspan.scaling.table import EXCHANGES, Run, read_times
from actionspan.scaling.timing_model import is_server, model_columns, ranks_and_seconds
from actionspan_papers.ring.published import GPUS, PRINTED, RING_BY_EQUATION_1, times
from actionspan_papers.tables import Row, add_outputs, write_table

_EQUATIONS = {"ps": "1", "ring": "2"}
_COLUMNS = ("times", "equation", *"TCP", "rank", "ranks", "seconds", "ratio", "note")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_times(parser)
    add_outputs(parser)


def add_times(parser: argparse.ArgumentParser) -> None:
    """Add the flag of the table of our runs."""
    parser.add_argument("--times", type=Path, help="times.tsv of our runs; without, none of them")


def run(arguments: argparse.Namespace) -> None:
    """Write the fits as TSV and Markdown."""
    caption = [
        "Fits of T, C and P to training times, in seconds. Equation 1 is T/n + C·n + P, equation 2 "
        "T/n + C·(n - 1)/n + P on n GPUs or ranks (paper 000). Seconds and speed ratio, T + P over "
        "the seconds, are those of the fit on the most ranks that were run.",
    ]
    rows = fit_rows(read_times(arguments.times) if arguments.times else [])
    write_table(arguments, rows, caption, "llrrrrrrrl", {name: name for name in _COLUMNS})


def fit_rows(runs: Sequence[Run]) -> list[Row]:
    """Return a row for each fit: the printed, those of the printed ring's curve, those of runs."""
    rows = [_row(f"{name}, printed", name, fit, GPUS) for name, fit in PRINTED.items()]
    only = {"times": "ring, printed", "equation": "1", "C": f"{RING_BY_EQUATION_1:.4f}"}
    rows.append({**dict.fromkeys(_COLUMNS, ""), **only, "note": "T and P are not printed."})
    gpus = np.arange(2.0, GPUS + 1)
    fitted = {f"ring, printed curve on 2 to {GPUS}": ("ring", gpus, times("ring", gpus))}
    for exchange in EXCHANGES:
        if own := [run for run in runs if run.exchange == exchange]:
            fitted[f"{exchange}, our runs"] = (exchange, *ranks_and_seconds(own))
    for name, (exchange, ranks, seconds) in fitted.items():
        for model in ["ps"] if is_server(exchange) else _EQUATIONS:
            fit = paper_fit(model_columns(model, ranks), seconds, is_ring=model == "ring")
            values = [round(fit[key], 9) + 0.0 for key in "TCP"]  # no -0
            rows.append(_row(name, model, values, int(ranks.max()), str(fit["rank"]), fit["note"]))
    return rows


def _row(
    name: str, model: str, fit: Sequence[float], most: int, rank: str = "", note: str = ""
) -> Row:
    """Return the row of T, C and P by the equation of `ps` or `ring`."""
    seconds = float(model_columns(model, np.array([float(most)]))[0] @ np.array(fit))
    values = (*fit, seconds, (fit[0] + fit[2]) / seconds)
    compute, communication, constant, last, ratio = (f"{value:.4f}" for value in values)
    cells = (_EQUATIONS[model], compute, communication, constant, rank, str(most), last, ratio)
    return dict(zip(_COLUMNS, (name, *cells, note), strict=True))
