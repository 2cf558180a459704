"""Write and draw the best validation accuracy over learning rates, of AAVG and of one learner."""

import argparse
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from actionspan.errors import InputError
from actionspan.evaluation.resampling import Floats
from actionspan.papers.aavg.comparisons import STREAM_NAMES
from actionspan.papers.aavg.readers import (
    RunKey,
    RunLogs,
    add_runs,
    read_run_logs,
    settings_of,
    training_of,
)
from actionspan.papers.curves import band, range_cells, write_figures
from actionspan.papers.estimates import over_seeds
from actionspan.papers.tables import Row, write_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Sweep = dict[tuple[str, str], dict[float, Floats]]
"""By method and stream, then rising rate: (S,) the best accuracy of each seed, in percent."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_runs(parser, figure=True)


def run(arguments: argparse.Namespace) -> None:
    """Write a row a method, stream and rate, a column a rate in Markdown, and the figure."""
    confidence = settings_of(arguments).confidence
    sweep = sweep_of(read_run_logs(arguments.logs))
    caption = [
        "Best validation accuracy of all epochs over learning rates, in percent; `none` is one "
        "learner alone, the others average their models once an epoch.",
        f"{training_of(arguments.scores)}, but for the learning rate.",
        f"Mean over seeds and, in brackets, the {100 * confidence:.4g} % interval over seeds "
        "(Student's t); one seed has none. The bars of the figure go from the lowest to the "
        "highest seed.",
    ]
    rates = sorted({rate for tried in sweep.values() for rate in tried})
    titles = {name: name for name in ("method", "stream", "seeds")}
    titles |= {repr(rate): f"{rate:g}" for rate in rates}
    shown = [_pivoted(*key, known, rates, confidence) for key, known in sweep.items()]
    write_table(arguments, rate_rows(sweep), caption, "llr" + "r" * len(rates), titles, shown)
    streams = list(dict.fromkeys(stream for _, stream in sweep))
    size = 3.4 * len(streams) + 0.6, 3.2
    write_figures(arguments, partial(_draw, sweep=sweep, streams=streams), size)


def sweep_of(logs: Mapping[RunKey, RunLogs]) -> Sweep:
    """Return the best accuracies of each method, stream and learning rate.

    Raises:
        InputError: Two runs are of one method and rate.
    """
    sweep: Sweep = {}
    for (name, stream), run_logs in logs.items():
        # the rate of the first epoch is the configured one: it falls after epochs alone
        rate = float(run_logs.columns["learning_rate"][0, 0])
        rates = sweep.setdefault((run_logs.learning.method, stream), {})
        if rate in rates:
            raise InputError(f"{name}, {stream}: the learning rate {rate:g} a second time")
        rates[rate] = run_logs.accuracy.max(axis=1)
    return {key: dict(sorted(rates.items())) for key, rates in sweep.items()}


def rate_rows(sweep: Sweep) -> list[Row]:
    """Return of each method, stream and rate the mean and range of the seeds, in percent."""
    return [
        {"method": method, "stream": stream, "learning_rate": f"{rate:g}", "seeds": str(len(best))}
        | range_cells("best_accuracy", *_range(best))
        for (method, stream), rates in sweep.items()
        for rate, best in rates.items()
    ]


def _range(best: Floats) -> tuple[float, float, float]:
    mean, low, high = (float(numbers[0]) for numbers in band(best[:, None]))
    return mean, low, high


def _pivoted(
    method: str, stream: str, known: Mapping[float, Floats], rates: list[float], confidence: float
) -> Row:
    """Return the row of a method and stream in Markdown: a column a rate."""
    seeds = " or ".join(map(str, sorted({len(best) for best in known.values()})))
    cells = {
        repr(rate): over_seeds([known[rate]], confidence).percentage()
        if rate in known and np.isfinite(known[rate]).all()
        else ""
        for rate in rates
    }
    return {"method": method, "stream": STREAM_NAMES[stream], "seeds": seeds, **cells}


def _draw(figure: "Figure", sweep: Sweep, streams: list[str]) -> None:
    """Draw a panel a stream: the mean over learning rates, bars from lowest to highest seed."""
    panels = figure.subplots(1, len(streams), sharey=True, squeeze=False)[0]
    for axes, stream in zip(panels, streams, strict=True):
        axes.set(xscale="log", xlabel="learning rate", title=STREAM_NAMES[stream])
        _draw_panel(
            axes, {method: rates for (method, other), rates in sweep.items() if other == stream}
        )
    panels[0].set_ylabel("best validation accuracy (%)")
    panels[-1].legend(frameon=False)


def _draw_panel(axes: "Axes", methods: Mapping[str, Mapping[float, Floats]]) -> None:
    from actionspan.files.figures import COLOURS

    every = sorted({rate for rates in methods.values() for rate in rates})
    axes.set_xlim(every[0] / 1.5, every[-1] * 1.5)
    for (method, rates), colour in zip(methods.items(), COLOURS, strict=False):
        mean, low, high = np.array([_range(best) for best in rates.values()]).T
        bars = [mean - low, high - mean]
        # NaN, where there are no validation clips, draws nothing
        axes.errorbar(list(rates), mean, bars, label=method, color=colour, marker="o", markersize=4)
    axes.set_xticks(every, [f"{rate:g}" for rate in every])
    axes.minorticks_off()
