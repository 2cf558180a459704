"""Write and draw validation accuracy over epochs, as in paper 003's figures 2 to 9."""

import argparse

import numpy as np

from actionspan.errors import InputError
from actionspan_papers.aavg import readers
from actionspan_papers.aavg.comparisons import COMPARISONS, STREAM_NAMES, curve_figures
from actionspan_papers.curves import epoch_rows, write_curves
from actionspan_papers.estimates import Estimate, over_seeds, over_seeds_words
from actionspan_papers.tables import Row, write_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--figure", required=True, choices=curve_figures(), help="which")
    readers.add_runs(parser, figure=True)


def run(arguments: argparse.Namespace) -> None:
    """Write every epoch as a table, a row a curve in Markdown, and the figure."""
    confidence = readers.settings_of(arguments).confidence
    curves = _curves_of(arguments.figure, readers.read_run_logs(arguments.logs))
    comparison, _, stream = arguments.figure.rpartition("_")
    title, number = COMPARISONS[comparison].title, COMPARISONS[comparison].numbers[stream]
    caption = [
        f"{title}: validation accuracy in percent, {STREAM_NAMES[stream]}"
        + (f" ({number} of paper 003)." if number else "."),
        f"{readers.training_of(arguments.scores)}. An epoch has as many samples in each run.",
        f"{over_seeds_words(confidence)} The band of the figure is no interval: it goes from the "
        "lowest to the highest seed.",
    ]
    titles = {name: name for name in ("curve", "run", "seeds", "epochs")}
    titles |= {"best": "best accuracy", "where": "first best epoch", "last": "at the last"}
    rows, shown = [], []
    for label, logs in curves.items():
        named = {"curve": label, "run": logs.learning.name}
        samples = logs.columns["samples"][0]
        rows += epoch_rows(named, "validation_accuracy", logs.accuracy, samples)
        shown.append({**named, **_summary(logs, confidence)})
    write_table(arguments, rows, caption, "llrrrrr", titles, shown)
    values = {label: logs.accuracy for label, logs in curves.items()}
    title = f"{title}, {STREAM_NAMES[stream]}: validation accuracy (%)"
    write_curves(arguments, values, title, "validation accuracy")


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
    seeds, epochs = map(str, accuracy.shape)
    best: str | Estimate = "no validation clip"
    last: str | Estimate = ""
    where = ""
    if np.isfinite(accuracy).all():
        best = over_seeds([accuracy.max(axis=1)], confidence).percentage()
        where = f"{float((accuracy.argmax(axis=1) + 1).mean()):.4g}"
        last = over_seeds([accuracy[:, -1]], confidence).percentage()
    return {"seeds": seeds, "epochs": epochs, "best": best, "where": where, "last": last}
