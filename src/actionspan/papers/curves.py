"""Curves over epochs: a line for each mean, named at its end, in a band of its seeds."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from actionspan.errors import InputError
from actionspan.evaluation.resampling import Floats
from actionspan.files.figures import COLOURS, house_style, save_figure, spread_labels
from actionspan.files.storage import read_tsv

Band = tuple[Floats, Floats, Floats, Floats]
"""(E,) epochs, mean, lowest and highest value of the seeds."""


def read_bands(path: Path, columns: Sequence[str]) -> dict[str, Band]:
    """Read curves from a table.

    Args:
        path: The table; its first column is the name of the curve, its last three are mean, lowest
            and highest value, and one is `epoch`.
        columns: All of its columns.

    Raises:
        InputError: The file is missing, a row is not of this table or there is none.
    """
    points: dict[str, list[list[float]]] = {}
    for number, row in enumerate(read_tsv(path), start=2):
        try:
            point = [float(row[column]) for column in ("epoch", *columns[-3:])]
            points.setdefault(row[columns[0]], []).append(point)
        except (KeyError, ValueError):
            raise InputError(f"{path}: row {number}: not a row of {', '.join(columns)}") from None
    if not points:
        raise InputError(f"{path}: no row")
    curves = {}
    for name, rows in points.items():
        epochs, mean, low, high = np.array(rows).T
        curves[name] = epochs, mean, low, high
    return curves


def draw_curves(path: Path, curves: Mapping[str, Band], title: str, missing: str) -> None:
    """Draw the mean of each curve as a line named at its end, the range of seeds as a band.

    A curve with an epoch without a value is left out, and the figure says so.

    Args:
        path: An .svg or .png file.
        curves: By name.
        title: Above the figure.
        missing: What a curve that is left out has not in some epoch.
    """
    drawn = {name: band for name, band in curves.items() if np.isfinite(band).all()}
    without = [name for name in curves if name not in drawn]
    with house_style():
        layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08)
        figure = Figure(figsize=(6.2, 3.7), layout=layout)
        axes = figure.subplots()
        axes.set(title=title, xlabel="epoch")
        if without:
            axes.set_xlabel(f"epoch\nno {missing} in some epoch: {', '.join(without)}")
        if drawn:
            _draw(axes, drawn)
        save_figure(figure, path)


def _draw(axes: Axes, curves: Mapping[str, Band]) -> None:
    """Draw the bands and lines of one curve or more, all of their values finite."""
    last = max(float(epochs[-1]) for epochs, *_ in curves.values())
    bottom = min(float(low.min()) for _, _, low, _ in curves.values())
    top = max(float(high.max()) for *_, high in curves.values())
    margin = 0.05 * (top - bottom) or 0.05
    axes.set_xlim(1 if last > 1 else 0, last)
    axes.set_ylim(bottom - margin, top + margin)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    colours = {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(curves)}
    for name, (epochs, mean, low, high) in curves.items():
        axes.fill_between(epochs, low, high, color=colours[name], alpha=0.15, linewidth=0)
        axes.plot(epochs, mean, color=colours[name], linewidth=1.7, zorder=3)
    # heights in parts of the axes, where `spread_labels` keeps them above the lower edge
    height = top - bottom + 2 * margin
    ends = {name: (float(c[1][-1]) - bottom + margin) / height for name, c in curves.items()}
    for name, place in spread_labels(ends, 0.068).items():
        axes.annotate(
            name,
            xy=(float(curves[name][0][-1]), float(curves[name][1][-1])),
            xytext=(1.05, place),
            textcoords="axes fraction",
            va="center",
            color=colours[name],
            weight="bold",
            arrowprops={
                "arrowstyle": "-",
                "color": colours[name],
                "linewidth": 0.7,
                "relpos": (0, 0.5),
                "shrinkA": 1,
                "shrinkB": 2,
            },
        )
