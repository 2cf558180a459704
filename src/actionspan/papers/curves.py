"""Curves over epochs: a line for each mean, named at its end, in a band of its seeds."""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from actionspan.evaluation.resampling import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Band = tuple[Floats, Floats, Floats]
"""(E,) mean, lowest and highest value of the seeds."""


def band(values: Floats) -> Band:
    """Return mean, lowest and highest of the seeds of (S, E) values."""
    mean = np.array([float(epoch.mean()) for epoch in values.T])
    return mean, values.min(axis=0), values.max(axis=0)


def range_cells(column: str, mean: float, low: float, high: float) -> dict[str, str]:
    """Return the cells of a mean over seeds and their range, which read back to the same bits."""
    names = (column, f"{column}_low", f"{column}_high")
    return dict(zip(names, map(repr, map(float, (mean, low, high))), strict=True))


def write_figures(
    arguments: argparse.Namespace,
    draw: "Callable[[Figure], None]",
    size: tuple[float, float] = (6.2, 3.7),
) -> None:
    """Write a figure, as SVG or PNG by the suffix of each file.

    Args:
        arguments: Those of `tables.add_outputs`.
        draw: Draws it; called once for each file.
        size: Width and height in inches.
    """
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    from actionspan.files.figures import house_style, save_figure

    path: Path
    for path in arguments.out_figures:
        with house_style():
            layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08)
            figure = Figure(figsize=size, layout=layout)
            draw(figure)
            save_figure(figure, path)


def draw_curves(figure: "Figure", curves: Mapping[str, Band], title: str, missing: str) -> None:
    """Draw the mean of each curve as a line named at its end, the range of seeds as a band.

    A curve with an epoch without a value is left out, and the figure says so.

    Args:
        figure: An empty one.
        curves: By name.
        title: Above the figure.
        missing: What a curve that is left out has not in some epoch.
    """
    drawn = {name: values for name, values in curves.items() if np.isfinite(values).all()}
    without = [name for name in curves if name not in drawn]
    axes = figure.subplots()
    axes.set(title=title, xlabel="epoch")
    if without:
        axes.set_xlabel(f"epoch\nno {missing} in some epoch: {', '.join(without)}")
    if drawn:
        _draw(axes, drawn)


def _draw(axes: "Axes", curves: Mapping[str, Band]) -> None:
    """Draw the bands and lines of one curve or more, all of their values finite."""
    from matplotlib.ticker import MaxNLocator

    from actionspan.files.figures import COLOURS, spread_labels

    last = float(max(len(mean) for mean, *_ in curves.values()))
    bottom = min(float(low.min()) for _, low, _ in curves.values())
    top = max(float(high.max()) for *_, high in curves.values())
    margin = 0.05 * (top - bottom) or 0.05
    axes.set_xlim(1 if last > 1 else 0, last)
    axes.set_ylim(bottom - margin, top + margin)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    colours = {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(curves)}
    for name, (mean, low, high) in curves.items():
        epochs = np.arange(1.0, len(mean) + 1)
        axes.fill_between(epochs, low, high, color=colours[name], alpha=0.15, linewidth=0)
        axes.plot(epochs, mean, color=colours[name], linewidth=1.7, zorder=3)
    # heights in parts of the axes, where `spread_labels` keeps them above the lower edge
    height = top - bottom + 2 * margin
    ends = {
        name: (float(mean[-1]) - bottom + margin) / height for name, (mean, *_) in curves.items()
    }
    for name, place in spread_labels(ends, 0.068).items():
        mean = curves[name][0]
        axes.annotate(
            name,
            xy=(float(len(mean)), float(mean[-1])),
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
