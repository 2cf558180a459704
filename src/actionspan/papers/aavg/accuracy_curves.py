"""Figures 2 to 9 of paper 003 for our runs: validation accuracy over epochs, mean and range."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from actionspan.errors import InputError
from actionspan.evaluation.resampling import Floats, seeds_half_width
from actionspan.files.storage import write_tsv
from actionspan.papers.aavg.comparisons import COMPARISONS, STREAM_NAMES
from actionspan.papers.aavg.run_files import Of, RunLogs
from actionspan.papers.curves import Band, draw_curves, read_bands

CURVE_COLUMNS = (
    "curve",
    "run",
    "epoch",
    "samples",
    "seeds",
    "validation_accuracy",
    "validation_accuracy_low",
    "validation_accuracy_high",
)


def curves_of(figure: str, logs: Mapping[Of, RunLogs]) -> dict[str, RunLogs]:
    """Return the logs of a figure by the name of their curve.

    Args:
        figure: One of `comparisons.curve_figures`.
        logs: What was read.

    Raises:
        InputError: A run does not stand in the figure, or two have one name there.
    """
    comparison, _, stream = figure.rpartition("_")
    curves: dict[str, RunLogs] = {}
    for (name, of), run in logs.items():
        label = COMPARISONS[comparison].label(run.learning)
        if label is None or of != stream:
            raise InputError(f"{name}, {of}: not a run of the figure {figure}")
        if label in curves:
            other = curves[label].learning.name
            raise InputError(f"{name} and {other} are one curve of {figure}; give one of them")
        curves[label] = run
    return curves


def write_curves(path: Path, curves: Mapping[str, RunLogs]) -> None:
    """Write of each curve and epoch the mean and range of the seeds, in percent."""
    rows = []
    for label, run in curves.items():
        for place, at in enumerate(run.accuracy.T):
            numbers = (float(of(at)) for of in (np.mean, np.min, np.max))
            samples = int(run.columns["samples"][0, place])
            row = (label, run.learning.name, place + 1, samples, len(at), *map(repr, numbers))
            rows.append(row)
    write_tsv(path, CURVE_COLUMNS, rows)


def read_curves(path: Path) -> dict[str, Band]:
    """Read such a table.

    Raises:
        InputError: The file is missing, a row is not of this table or there is none.
    """
    return read_bands(path, CURVE_COLUMNS)


def draw_accuracy(path: Path, figure: str, curves: Mapping[str, Band]) -> None:
    """Draw what `read_curves` returned as an .svg or .png file."""
    comparison, _, stream = figure.rpartition("_")
    title = f"{COMPARISONS[comparison].title}, {STREAM_NAMES[stream]}: validation accuracy (%)"
    draw_curves(path, curves, title, "validation accuracy")


def curves_markdown(
    figure: str, curves: Mapping[str, RunLogs], measured: str, confidence: float
) -> str:
    """Return a row a curve: mean over seeds and interval of its best and its last accuracy.

    Args:
        figure: One of `comparisons.curve_figures`.
        curves: By the name in the figure.
        measured: How and on what these runs were trained, in words.
        confidence: Of the intervals, in (0, 1).
    """
    comparison, _, stream = figure.rpartition("_")
    number = COMPARISONS[comparison].numbers[stream]
    lines = [
        f"{COMPARISONS[comparison].title}: validation accuracy in percent, {STREAM_NAMES[stream]}"
        + (f" ({number} of paper 003)." if number else "."),
        f"{measured}. An epoch has as many samples in each run.",
        f"Mean over seeds and, in brackets, the {100 * confidence:.4g} % interval over seeds "
        "(Student's t); one seed has none. The band of the figure is no interval: it goes from "
        "the lowest to the highest seed.",
        "",
        "| curve | run | seeds | epochs | best accuracy | first best epoch | at the last |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for label, run in curves.items():
        accuracy = run.accuracy
        seeds, epochs = accuracy.shape
        cells = ["no validation clip", "", ""]
        if np.isfinite(accuracy).all():
            where = float((accuracy.argmax(axis=1) + 1).mean())
            best, last = accuracy.max(axis=1), accuracy[:, -1]
            cells = [seeds_estimate(best, confidence), f"{where:.4g}"]
            cells.append(seeds_estimate(last, confidence))
        words = [label, run.learning.name, str(seeds), str(epochs), *cells]
        lines.append("| " + " | ".join(words) + " |")
    return "\n".join(lines) + "\n"


def seeds_estimate(values: Floats, confidence: float) -> str:
    """Return the mean of (S,) percentages, and its t interval where there are two or more."""
    mean = float(values.mean())
    if len(values) < 2:
        return f"{mean:.2f}"
    half = seeds_half_width([values], confidence)
    return f"{mean:.2f} [{max(mean - half, 0):.2f}, {min(mean + half, 100):.2f}]"
