"""Write paper 000's fits as a table: the printed ones, their implications, and our runs' fits.

Paper 001 prints the same fits for MTN.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from actionspan.scaling.fit_timing import paper_fit
from actionspan.scaling.times import EXCHANGES, Run, read_times
from actionspan.scaling.timing_model import is_server, model_columns, ranks_and_seconds
from actionspan_papers.experiments import Experiment, Row, Table, titled
from actionspan_papers.kinds import Flags
from actionspan_papers.ring.published import GPUS, PRINTED, RING_BY_EQUATION_1, times

TIMES = {"times": {"type": Path, "help": "times.tsv of our runs, if there are any"}}
"""The flag of the table of our runs."""
_EQUATIONS = {"ps": "1", "ring": "2"}
_COLUMNS = ("times", "equation", *"TCP", "rank", "ranks", "seconds", "ratio", "note")


def runs_of(arguments: Flags) -> list[Run]:
    """Return our timed runs, none without a table of them."""
    return read_times(arguments.times) if arguments.times else []


def _table(*_: object) -> Table:
    caption = [
        "Fits of T, C and P to training times, in seconds. Equation 1 is T/n + C·n + P, equation 2 "
        "T/n + C·(n - 1)/n + P on n GPUs or ranks (paper 000). Seconds and speed ratio, T + P over "
        "the seconds, are the fit's on the most ranks that were run."
    ]
    return Table(caption=caption, titles=titled("; ".join(_COLUMNS)), align="llrrrrrrrl")


def fit_rows(runs: Sequence[Run]) -> list[Row]:
    """Return a row for each fit: printed, of the printed ring's curve, of runs."""
    rows: list[Row] = [_row(f"{name}, printed", name, fit, GPUS) for name, fit in PRINTED.items()]
    only: Row = {"times": "ring, printed", "equation": "1", "C": RING_BY_EQUATION_1}
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
    numbers = (*fit, rank, most, seconds, (fit[0] + fit[2]) / seconds)
    return dict(zip(_COLUMNS, (name, _EQUATIONS[model], *numbers, note), strict=True))


EXPERIMENT = Experiment(
    inputs=TIMES,
    rows=lambda arguments: fit_rows(runs_of(arguments)),
    table=_table,
    forms=dict.fromkeys([*"TCP", "seconds", "ratio"], ".4f"),
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
