"""Curves over epochs: a line for each mean, named at its end, in a band of its seeds."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from actionspan.arrays import Float64
from actionspan_papers.experiments import Cell, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Band = tuple[Float64, Float64, Float64]
"""(E,) mean, lowest and highest value of the seeds."""


def band(values: Float64) -> Band:
    """Return mean, lowest and highest of the seeds of (S, E) values."""
    mean = np.array([float(epoch.mean()) for epoch in values.T])
    return mean, values.min(axis=0), values.max(axis=0)


def epoch_rows(
    named: Mapping[str, str], column: str, values: Float64, samples: Float64 | None = None
) -> list[Row]:
    """Return a row an epoch: mean and range of the seeds of (S, E) values.

    It begins with the cells that name the curve; (E,) samples so far get a column of their own.
    """
    rows: list[Row] = []
    for epoch, numbers in enumerate(zip(*band(values), strict=True)):
        row: dict[str, Cell] = {**named, "epoch": epoch + 1}
        if samples is not None:
            row["samples"] = int(samples[epoch])
        cells = zip(range_forms(column), map(float, numbers), strict=True)
        rows.append({**row, "seeds": len(values), **dict(cells)})
    return rows


def range_forms(column: str) -> dict[str, str]:
    """Return the forms of mean and range: all digits, so that they read back to the same bits."""
    return dict.fromkeys((column, f"{column}_low", f"{column}_high"), "")


def draw_curves(figure: "Figure", curves: Mapping[str, Float64], title: str, measure: str) -> None:
    """Draw the mean of (S, E) values as a line, named at its end, in a band of seeds.

    A curve with an epoch without a value is left out, and the figure says so: no `measure` there.
    """
    drawn = {name: band(values) for name, values in curves.items() if np.isfinite(values).all()}
    without = [name for name in curves if name not in drawn]

    axes = figure.subplots()
    axes.set(title=title, xlabel="epoch")
    if without:
        axes.set_xlabel(f"epoch\nno {measure} in some epoch: {', '.join(without)}")
    if drawn:
        _draw_bands(axes, drawn)


def _draw_bands(axes: "Axes", curves: Mapping[str, Band]) -> None:
    from matplotlib.ticker import MaxNLocator

    from actionspan.files.figures import COLOURS, spread_labels

    # axes that hold all bands
    last = float(max(len(mean) for mean, *_ in curves.values()))
    bottom = min(float(low.min()) for _, low, _ in curves.values())
    top = max(float(high.max()) for *_, high in curves.values())
    margin = 0.05 * (top - bottom) or 0.05
    axes.set_xlim(1 if last > 1 else 0, last)
    axes.set_ylim(bottom - margin, top + margin)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    # bands and lines
    colours = {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(curves)}
    for name, (mean, low, high) in curves.items():
        epochs = np.arange(1.0, len(mean) + 1)
        axes.fill_between(epochs, low, high, color=colours[name], alpha=0.15, linewidth=0)
        axes.plot(epochs, mean, color=colours[name], linewidth=1.7, zorder=3)
    # names; heights in parts of the axes, where `spread_labels` keeps them above the lower edge
    height = top - bottom + 2 * margin
    lasts = {name: float(mean[-1]) for name, (mean, *_) in curves.items()}
    ends = {name: (value - bottom + margin) / height for name, value in lasts.items()}
    arrow = {"arrowstyle": "-", "linewidth": 0.7, "relpos": (0, 0.5), "shrinkA": 1, "shrinkB": 2}
    for name, place in spread_labels(ends, 0.068).items():
        axes.annotate(
            name,
            xy=(float(len(curves[name][0])), lasts[name]),
            xytext=(1.05, place),
            textcoords="axes fraction",
            va="center",
            color=colours[name],
            weight="bold",
            arrowprops={**arrow, "color": colours[name]},
        )
