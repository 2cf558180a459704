"""Write and draw validation accuracy over epochs, as in paper 003's figures 2 to 9."""

import argparse
from collections.abc import Mapping

import numpy as np

from actionspan.errors import InputError
from actionspan.papers.aavg.comparisons import COMPARISONS, STREAM_NAMES, curve_figures
from actionspan.papers.aavg.readers import (
    RunKey,
    RunLogs,
    add_runs,
    read_run_logs,
    settings_of,
    training_of,
)
from actionspan.papers.curves import band, draw_curves, range_cells, write_figures
from actionspan.papers.estimates import Estimate, over_seeds
from actionspan.papers.tables import Row, write_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--figure", required=True, choices=curve_figures(), help="which")
    add_runs(parser, figure=True)


def run(arguments: argparse.Namespace) -> None:
    """Write every epoch as a table, a row a curve in Markdown, and the figure."""
    confidence = settings_of(arguments).confidence
    curves = curves_of(arguments.figure, read_run_logs(arguments.logs))
    comparison, _, stream = arguments.figure.rpartition("_")
    title, number = COMPARISONS[comparison].title, COMPARISONS[comparison].numbers[stream]
    caption = [
        f"{title}: validation accuracy in percent, {STREAM_NAMES[stream]}"
        + (f" ({number} of paper 003)." if number else "."),
        f"{training_of(arguments.scores)}. An epoch has as many samples in each run.",
        f"Mean over seeds and, in brackets, the {100 * confidence:.4g} % interval over seeds "
        "(Student's t); one seed has none. The band of the figure is no interval: it goes from "
        "the lowest to the highest seed.",
    ]
    titles = {name: name for name in ("curve", "run", "seeds", "epochs")}
    titles |= {"best": "best accuracy", "where": "first best epoch", "last": "at the last"}
    shown = summary_rows(curves, confidence)
    write_table(arguments, curve_rows(curves), caption, "llrrrrr", titles, shown)
    bands = {label: band(logs.accuracy) for label, logs in curves.items()}
    title = f"{title}, {STREAM_NAMES[stream]}: validation accuracy (%)"
    write_figures(
        arguments, lambda figure: draw_curves(figure, bands, title, "validation accuracy")
    )


def curves_of(figure: str, logs: Mapping[RunKey, RunLogs]) -> dict[str, RunLogs]:
    """Return the logs of a figure by the name of their curve.

    Args:
        figure: One of `comparisons.curve_figures`.
        logs: What was read.

    Raises:
        InputError: A run does not stand in the figure, or two have one name there.
    """
    comparison, _, wanted = figure.rpartition("_")
    curves: dict[str, RunLogs] = {}
    for (name, stream), run_logs in logs.items():
        label = COMPARISONS[comparison].label(run_logs.learning)
        if label is None or stream != wanted:
            raise InputError(f"{name}, {stream}: not a run of the figure {figure}")
        if label in curves:
            other = curves[label].learning.name
            raise InputError(f"{name} and {other} are one curve of {figure}; give one of them")
        curves[label] = run_logs
    return curves


def curve_rows(curves: Mapping[str, RunLogs]) -> list[Row]:
    """Return of each curve and epoch the mean and range of the seeds, in percent."""
    return [
        {
            "curve": label,
            "run": logs.learning.name,
            "epoch": str(place + 1),
            "samples": str(int(logs.columns["samples"][0, place])),
            "seeds": str(len(logs.seeds)),
        }
        | range_cells("validation_accuracy", *numbers)
        for label, logs in curves.items()
        for place, numbers in enumerate(zip(*band(logs.accuracy), strict=True))
    ]


def summary_rows(curves: Mapping[str, RunLogs], confidence: float) -> list[Row]:
    """Return of each curve its best and its last accuracy with their intervals over seeds."""
    rows: list[Row] = []
    for label, logs in curves.items():
        accuracy = logs.accuracy
        seeds, epochs = map(str, accuracy.shape)
        row: dict[str, str | Estimate] = {"curve": label, "run": logs.learning.name}
        row |= {"seeds": seeds, "epochs": epochs}
        row |= {"best": "no validation clip", "where": "", "last": ""}
        if np.isfinite(accuracy).all():
            row["best"] = over_seeds([accuracy.max(axis=1)], confidence).percentage()
            row["where"] = f"{float((accuracy.argmax(axis=1) + 1).mean()):.4g}"
            row["last"] = over_seeds([accuracy[:, -1]], confidence).percentage()
        rows.append(row)
    return rows
