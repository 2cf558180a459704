"""Write and draw validation accuracy over epochs, as in paper 003's figures 2 to 9."""

import argparse
from typing import TYPE_CHECKING

import numpy as np

from actionspan.errors import InputError
from actionspan_papers.aavg import readers
from actionspan_papers.aavg.comparisons import COMPARISONS, STREAM_NAMES, curve_figures
from actionspan_papers.aavg.settings import ExperimentSettings
from actionspan_papers.curves import draw_curves, epoch_rows, range_forms
from actionspan_papers.estimates import Estimate, over_seeds, over_seeds_words
from actionspan_papers.experiments import Experiment, Row, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_COLUMN = "validation_accuracy"
_Read = tuple[str, dict[str, readers.RunLogs], str]
"""The figure, its logs by the name of their curve, and how their runs were trained."""


def _read(arguments: argparse.Namespace, _: ExperimentSettings) -> _Read:
    logs, trained = readers.read_logs_of(arguments, None)
    return arguments.figure, _curves_of(arguments.figure, logs), trained


def _rows(read: _Read, _: ExperimentSettings) -> list[Row]:
    """Return a row an epoch of a curve."""
    rows: list[Row] = []
    for label, logs in read[1].items():
        named = {"curve": label, "run": logs.learning.name}
        rows += epoch_rows(named, _COLUMN, logs.accuracy, logs.columns["samples"][0])
    return rows


def _table(__: object, read: _Read, settings: ExperimentSettings) -> Table:
    """Return a row a curve."""
    name, curves, trained = read
    comparison, _, stream = name.rpartition("_")
    title, number = COMPARISONS[comparison].title, COMPARISONS[comparison].numbers[stream]
    caption = [
        f"{title}: validation accuracy in percent, {STREAM_NAMES[stream]}"
        + (f" ({number} of paper 003)." if number else "."),
        f"{trained}. An epoch has as many samples in each run.",
        f"{over_seeds_words(settings.confidence)} The band of the figure is no interval: it goes "
        "from the lowest to the highest seed.",
    ]
    titles = {name: name for name in ("curve", "run", "seeds", "epochs")}
    titles |= {"best": "best accuracy", "where": "first best epoch", "last": "at the last"}
    shown: list[Row] = [
        {"curve": label, "run": logs.learning.name, **_summary(logs, settings.confidence)}
        for label, logs in curves.items()
    ]
    return Table(caption=caption, titles=titles, rows=shown, align="llrrrrr")


def _draw(figure: "Figure", __: object, read: _Read, ___: ExperimentSettings) -> None:
    name, curves, _ = read
    comparison, _, stream = name.rpartition("_")
    title = f"{COMPARISONS[comparison].title}, {STREAM_NAMES[stream]}: validation accuracy (%)"
    values = {label: logs.accuracy for label, logs in curves.items()}
    draw_curves(figure, values, title, "validation accuracy")


def _curves_of(figure: str, logs: readers.Logs) -> dict[str, readers.RunLogs]:
    """Return the logs of a figure by the name of their curve.

    Raises:
        InputError: A run is not in the figure, or two have one name there.
    """
    comparison, _, wanted = figure.rpartition("_")
    curves: dict[str, readers.RunLogs] = {}
    for (name, stream), run_logs in logs.items():
        label = COMPARISONS[comparison].label(run_logs.learning)
        if label is None or stream != wanted:
            raise InputError(f"{name}, {stream}: not a run of the figure {figure}")
        if label in curves:
            other = curves[label].learning.name
            raise InputError(f"{name} and {other} are one curve of {figure}; give one of them")
        curves[label] = run_logs
    return curves


def _summary(logs: readers.RunLogs, confidence: float) -> Row:
    """Return the best and the last accuracy of a curve with their intervals over seeds."""
    accuracy = logs.accuracy
    seeds, epochs = accuracy.shape
    best: str | Estimate = "no validation clip"
    last: str | Estimate = ""
    where = ""
    if np.isfinite(accuracy).all():
        best = over_seeds([accuracy.max(axis=1)], confidence).percentage()
        where = f"{float((accuracy.argmax(axis=1) + 1).mean()):.4g}"
        last = over_seeds([accuracy[:, -1]], confidence).percentage()
    return {"seeds": seeds, "epochs": epochs, "best": best, "where": where, "last": last}


EXPERIMENT = Experiment(
    inputs={
        "figure": {"required": True, "choices": curve_figures(), "help": "which"},
        **readers.LOGS,
        **readers.SCORES,
    },
    read=_read,
    rows=_rows,
    table=_table,
    figure=_draw,
    settings=(ExperimentSettings,),
    planned=readers.PLANNED,
    forms=range_forms(_COLUMN),
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
