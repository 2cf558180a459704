"""Write and draw validation accuracy over epochs, as in paper 003's figures 2 to 9."""

from typing import NamedTuple

import numpy as np

from actionspan.errors import InputError
from actionspan_papers.aavg import comparisons, readers
from actionspan_papers.aavg.comparisons import STREAM_NAMES, ExperimentSettings
from actionspan_papers.estimates import Estimate, over_seeds, over_seeds_words
from actionspan_papers.experiments import Experiment, Row, Table, titled
from actionspan_papers.kinds import DataFrame, Figure, Flags
from actionspan_papers.runs import draw_curves, epoch_rows, range_forms

_COLUMN = "validation_accuracy"
_TITLES = titled(
    "curve; run; seeds; epochs; best: best accuracy; where: first best epoch; last: at the last"
)


class _Read(NamedTuple):
    comparison: comparisons.Comparison
    stream: str
    curves: dict[str, readers.RunLogs]
    """By their name in the figure."""
    trained: str


def _read(arguments: Flags, _: ExperimentSettings) -> _Read:
    """Read the logs of a figure.

    Raises:
        InputError: A run is not in the figure, or two have one name there.
    """
    logs, trained = readers.read_logged_runs(arguments, None)
    figure = arguments.figure
    name, _, wanted = figure.rpartition("_")
    comparison = comparisons.COMPARISONS[name]
    curves: dict[str, readers.RunLogs] = {}
    for (name, stream), run_logs in logs.items():
        label = comparison.label(run_logs.learning)
        if label is None or stream != wanted:
            raise InputError(f"{name}, {stream}: not a run of the figure {figure}")
        if label in curves:
            other = curves[label].learning.name
            raise InputError(f"{name} and {other} are one curve of {figure}; give one of them")
        curves[label] = run_logs
    return _Read(comparison, wanted, curves, trained)


def _rows(read: _Read, _: ExperimentSettings) -> list[Row]:
    """Return a row an epoch of a curve."""
    rows: list[Row] = []
    for label, logs in read.curves.items():
        named = {"curve": label, "run": logs.learning.name}
        rows += epoch_rows(named, _COLUMN, logs.accuracy, logs.columns["samples"][0])
    return rows


def _table(__: object, read: _Read, settings: ExperimentSettings) -> Table:
    """Return a row a curve."""
    number = read.comparison.numbers[read.stream]
    caption = [
        f"{read.comparison.title}: validation accuracy in percent, {STREAM_NAMES[read.stream]}"
        + (f" ({number} of paper 003)." if number else "."),
        f"{read.trained}. An epoch has as many samples in each run.",
        f"{over_seeds_words(settings.confidence)} The band of the figure is not an interval: it "
        "goes from the lowest to the highest seed.",
    ]
    shown = [_summary(label, logs, settings.confidence) for label, logs in read.curves.items()]
    return Table(caption=caption, titles=_TITLES, rows=shown, align="llrrrrr")


def _summary(label: str, logs: readers.RunLogs, confidence: float) -> Row:
    """Return the best and the last accuracy of a curve with their intervals over seeds."""
    accuracy = logs.accuracy
    best: str | Estimate = "no validation clip"
    last: str | Estimate = ""
    where = ""
    if np.isfinite(accuracy).all():
        best = over_seeds([accuracy.max(axis=1)], confidence).percentage()
        where = f"{float((accuracy.argmax(axis=1) + 1).mean()):.4g}"
        last = over_seeds([accuracy[:, -1]], confidence).percentage()
    cells = (label, logs.learning.name, *accuracy.shape, best, where, last)
    return dict(zip(_TITLES, cells, strict=True))


def _draw(figure: Figure, frame: DataFrame, read: _Read, _: ExperimentSettings) -> None:
    title = f"{read.comparison.title}, {STREAM_NAMES[read.stream]}: validation accuracy (%)"
    draw_curves(figure, frame, "curve", _COLUMN, title)


_FIGURE = {"figure": {"required": True, "choices": comparisons.curve_figures(), "help": "which"}}
EXPERIMENT = Experiment(
    inputs={**_FIGURE, **readers.LOGS_AND_SCORES},
    read=_read,
    rows=_rows,
    table=_table,
    figure=_draw,
    forms=range_forms(_COLUMN),
    **readers.SETTINGS,
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
