"""Write and draw the best validation accuracy over learning rates, of AAVG and of one learner."""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from actionspan.arrays import Float64
from actionspan.errors import InputError
from actionspan_papers.aavg import readers
from actionspan_papers.aavg.comparisons import STREAM_NAMES
from actionspan_papers.aavg.settings import ExperimentSettings
from actionspan_papers.curves import range_cells, range_forms
from actionspan_papers.estimates import over_seeds, over_seeds_words
from actionspan_papers.experiments import Cell, Experiment, Row, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMN = "best_accuracy"
_Sweep = dict[tuple[str, str], dict[float, Float64]]
"""By method and stream, then rising rate: (S,) the best accuracy of each seed, in percent."""


_Read = tuple[_Sweep, str]
"""The sweep, and how its runs were trained."""


def _read(arguments: argparse.Namespace, _: ExperimentSettings) -> _Read:
    logs, trained = readers.read_logs_of(arguments, None)
    return _sweep_of(logs), trained


def _rows(read: _Read, _: ExperimentSettings) -> list[Row]:
    """Return a row a method, stream and rate."""
    rows: list[Row] = []
    for (method, stream), tried in read[0].items():
        for rate, best in tried.items():
            named: Row = {"method": method, "stream": stream, "learning_rate": rate}
            rows.append({**named, "seeds": len(best), **range_cells(_COLUMN, *_range(best))})
    return rows


def _table(_: object, read: _Read, settings: ExperimentSettings) -> Table:
    """Return a row a method and stream, a column a rate."""
    sweep, trained = read
    caption = [
        "Best validation accuracy of all epochs over learning rates, in percent; `none` is one "
        "learner alone, the others average their models once an epoch.",
        f"{trained}, but for the learning rate.",
        f"{over_seeds_words(settings.confidence)} The bars of the figure go from "
        "the lowest to the highest seed.",
    ]
    rates = sorted({rate for tried in sweep.values() for rate in tried})
    titles = {name: name for name in ("method", "stream", "seeds")}
    titles |= {repr(rate): f"{rate:g}" for rate in rates}
    shown = [_pivoted(*key, tried, rates, settings.confidence) for key, tried in sweep.items()]
    return Table(caption=caption, titles=titles, rows=shown, align="llr" + "r" * len(rates))


def _sweep_of(logs: readers.Logs) -> _Sweep:
    """Return the best accuracies of each method, stream and learning rate.

    Raises:
        InputError: Two runs are of one method and rate.
    """
    sweep: _Sweep = {}
    for (name, stream), run_logs in logs.items():
        # the rate of the first epoch is the configured one: it falls after epochs alone
        rate = float(run_logs.columns["learning_rate"][0, 0])
        rates = sweep.setdefault((run_logs.learning.method, stream), {})
        if rate in rates:
            raise InputError(f"{name}, {stream}: the learning rate {rate:g} a second time")
        rates[rate] = run_logs.accuracy.max(axis=1)
    return {key: dict(sorted(rates.items())) for key, rates in sweep.items()}


def _range(best: Float64) -> tuple[float, float, float]:
    return float(best.mean()), float(best.min()), float(best.max())


def _pivoted(
    method: str, stream: str, tried: Mapping[float, Float64], rates: list[float], confidence: float
) -> Row:
    """Return the row of a method and stream in Markdown: a column a rate."""
    seeds = " or ".join(map(str, sorted({len(best) for best in tried.values()})))
    cells: dict[str, Cell] = dict.fromkeys(map(repr, rates), "")
    for rate, best in tried.items():
        if np.isfinite(best).all():
            cells[repr(rate)] = over_seeds([best], confidence).percentage()
    return {"method": method, "stream": STREAM_NAMES[stream], "seeds": seeds, **cells}


def _draw(figure: "Figure", _: object, read: _Read, __: ExperimentSettings) -> None:
    """Draw a panel a stream: the mean over learning rates, bars from lowest to highest seed."""
    from actionspan.files.figures import COLOURS

    sweep, _ = read
    streams = list(dict.fromkeys(stream for _, stream in sweep))
    figure.set_size_inches(3.4 * len(streams) + 0.6, 3.2)
    panels = figure.subplots(1, len(streams), sharey=True, squeeze=False)[0]
    for axes, stream in zip(panels, streams, strict=True):
        methods = {key[0]: rates for key, rates in sweep.items() if key[1] == stream}
        every = sorted({rate for rates in methods.values() for rate in rates})
        axes.set(xscale="log", xlabel="learning rate", title=STREAM_NAMES[stream])
        axes.set_xlim(every[0] / 1.5, every[-1] * 1.5)
        for (method, rates), colour in zip(methods.items(), COLOURS, strict=False):
            mean, low, high = np.array([_range(best) for best in rates.values()]).T
            # NaN, where there are no validation clips, draws nothing
            dots = {"label": method, "color": colour, "marker": "o", "markersize": 4}
            axes.errorbar(list(rates), mean, [mean - low, high - mean], **dots)
        axes.set_xticks(every, [f"{rate:g}" for rate in every])
        axes.minorticks_off()
    panels[0].set_ylabel("best validation accuracy (%)")
    panels[-1].legend(frameon=False)


EXPERIMENT = Experiment(
    inputs={**readers.LOGS, **readers.SCORES},
    read=_read,
    rows=_rows,
    table=_table,
    figure=_draw,
    settings=(ExperimentSettings,),
    planned=readers.PLANNED,
    forms=range_forms(_COLUMN),
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
