"""Recall curves of several methods: the table, and the figure drawn from that table."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from actionspan.errors import InputError
from actionspan.evaluation.records import Record
from actionspan.files.figures import (
    COLOURS,
    INK,
    QUIET,
    house_style,
    name_line,
    save_figure,
    spread_labels,
)
from actionspan.files.storage import read_tsv

CURVE_COLUMNS = ("method", "kind", "x", "y")
AR_AGAINST_AN = "AR vs AN"
RECALL_AGAINST_TIOU = "recall vs tIoU at AN=100"
PANELS = (
    (AR_AGAINST_AN, "Average recall", "average number of proposals (AN)"),
    (RECALL_AGAINST_TIOU, "Recall at AN = 100", "tIoU threshold"),
)
BASELINE_DASHES = {
    "random": (1, 1.6),
    "sliding": (4, 1.8),
    "difference": (6, 1.6, 1, 1.6),
    "tag": (6, 1.6, 1, 1.6, 1, 1.6),
}

Curve = tuple[list[float], list[float]]


def curve_rows(records: Sequence[Record]) -> list[tuple[str, str, float, float]]:
    """Return the rows (method, kind, x, y) of recall_curves.tsv; y is a fraction."""
    rows = []
    for record in records:
        method = str(record["method"])
        for number, recall in zip(record["AN"], record["AR"], strict=True):
            rows.append((method, AR_AGAINST_AN, float(number), float(recall)))
        for tiou, recalls in record["recall"].items():
            rows.append((method, RECALL_AGAINST_TIOU, float(tiou), float(recalls[-1])))
    return rows


def read_curves(path: Path) -> dict[str, dict[str, Curve]]:
    """Read recall_curves.tsv: by kind and method, the x and the y values.

    Raises:
        InputError: The file is missing, a row does not belong to it or a kind has no row.
    """
    curves: dict[str, dict[str, Curve]] = {AR_AGAINST_AN: {}, RECALL_AGAINST_TIOU: {}}
    for row, values in enumerate(read_tsv(path), start=2):
        try:
            xs, ys = curves[values["kind"]].setdefault(values["method"], ([], []))
            xs.append(float(values["x"]))
            ys.append(float(values["y"]))
        except (KeyError, TypeError, ValueError):
            raise InputError(
                f"{path}: row {row}: not a row of {', '.join(CURVE_COLUMNS)}"
            ) from None
    if not all(curves.values()):
        raise InputError(f"{path}: no rows for both kinds of curve; it needs both")
    return curves


def draw_curves(path: Path, curves: dict[str, dict[str, Curve]]) -> None:
    """Draw both kinds of curves next to each other, each line named at its right end."""
    methods = list(curves[AR_AGAINST_AN])
    learned = [method for method in methods if method not in BASELINE_DASHES]
    colours = {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(learned)}
    with house_style():
        layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08, wspace=0.06)
        figure = Figure(figsize=(9.0, 3.7), layout=layout)
        for axes, (kind, title, label) in zip(figure.subplots(1, 2), PANELS, strict=True):
            _panel(axes, curves[kind], colours)
            axes.set(title=title, xlabel=label)
            axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%")
        save_figure(figure, path)


def _panel(axes: Axes, curves: dict[str, Curve], colours: dict[str, str]) -> None:
    """Draw the lines of one panel and their names."""
    right = max(xs[-1] for xs, _ in curves.values())
    top = max(max(ys) for _, ys in curves.values())
    axes.set_xlim(min(xs[0] for xs, _ in curves.values()), right)
    axes.set_ylim(0, min(1.0, top * 1.06 + 0.01))
    for method, (xs, ys) in curves.items():
        colour = colours.get(method, QUIET)
        (line,) = axes.plot(xs, ys, color=colour, linewidth=1.9, clip_on=False, zorder=3)
        if method in BASELINE_DASHES:
            line.set(dashes=BASELINE_DASHES[method], linewidth=1.4, zorder=2)
    ends = {method: ys[-1] for method, (_, ys) in curves.items()}
    for method, height in spread_labels(ends, 0.068 * axes.get_ylim()[1]).items():
        look: dict[str, Any] = (
            {"color": INK, "weight": "normal"} if method in BASELINE_DASHES else {}
        )
        place = (1.075, height / axes.get_ylim()[1])
        name_line(axes, method, (right, ends[method]), place, colours.get(method, QUIET), **look)
