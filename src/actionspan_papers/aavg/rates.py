"""Write and draw the best validation accuracy over learning rates, of AAVG and of one learner."""

import argparse
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from actionspan.arrays import Float64
from actionspan.errors import InputError
from actionspan_papers.aavg import readers
from actionspan_papers.aavg.comparisons import STREAM_NAMES
from actionspan_papers.curves import range_cells
from actionspan_papers.estimates import Estimate, over_seeds, over_seeds_words
from actionspan_papers.tables import Row, write_figures, write_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_Sweep = dict[tuple[str, str], dict[float, Float64]]
"""By method and stream, then rising rate: (S,) the best accuracy of each seed, in percent."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    readers.add_runs(parser, figure=True)


def run(arguments: argparse.Namespace) -> None:
    """Write a row a method, stream and rate, a column a rate in Markdown, and the figure."""
    confidence = readers.settings_of(arguments).confidence
    sweep = _sweep_of(readers.read_run_logs(arguments.logs))
    caption = [
        "Best validation accuracy of all epochs over learning rates, in percent; `none` is one "
        "learner alone, the others average their models once an epoch.",
        f"{readers.training_of(arguments.scores)}, but for the learning rate.",
        f"{over_seeds_words(confidence)} The bars of the figure go from the lowest to the highest "
        "seed.",
    ]
    rates = sorted({rate for tried in sweep.values() for rate in tried})
    titles = {name: name for name in ("method", "stream", "seeds")}
    titles |= {repr(rate): f"{rate:g}" for rate in rates}
    rows = [
        {"method": method, "stream": stream, "learning_rate": f"{rate:g}", "seeds": str(len(best))}
        | range_cells("best_accuracy", *_range(best))
        for (method, stream), tried in sweep.items()
        for rate, best in tried.items()
    ]
    shown = [_pivoted(*key, tried, rates, confidence) for key, tried in sweep.items()]
    write_table(arguments, rows, caption, "llr" + "r" * len(rates), titles, shown)
    streams = list(dict.fromkeys(stream for _, stream in sweep))
    size = 3.4 * len(streams) + 0.6, 3.2
    write_figures(arguments, partial(_draw, sweep=sweep, streams=streams), size)


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
    cells: dict[str, str | Estimate] = dict.fromkeys(map(repr, rates), "")
    for rate, best in tried.items():
        if np.isfinite(best).all():
            cells[repr(rate)] = over_seeds([best], confidence).percentage()
    return {"method": method, "stream": STREAM_NAMES[stream], "seeds": seeds, **cells}


def _draw(figure: "Figure", sweep: _Sweep, streams: list[str]) -> None:
    """Draw a panel a stream: the mean over learning rates, bars from lowest to highest seed."""
    from actionspan.files.figures import COLOURS

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
