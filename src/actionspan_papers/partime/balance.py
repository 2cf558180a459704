"""Divide networks into stages: bounds by measured time and by counted multiplications."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from actionspan.settings import add_settings, from_arguments
from actionspan_papers.partime.published import ENCODERS
from actionspan_papers.partime.settings import SpeedSettings
from actionspan_papers.rows import Row, distinct, values
from actionspan_papers.tables import add_outputs, write_figures, write_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_outputs(parser, figure=True)
    add_settings(parser, SpeedSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write a row a network, work and number of stages, and the figure."""
    settings = from_arguments(SpeedSettings, arguments)
    from actionspan_papers.partime.speed_rows import balance_rows

    rows = balance_rows(settings)
    caption = [
        "Stages of least slowest time. Bound: CPU time of the whole by that of the slowest stage, "
        "as measured; `by counting`: the same of multiplications, which are no matter of the "
        "machine; `as many layers each`: by counting, without balancing. F is the least.",
        f"ResNet-18 and EfficientNet-Lite0 ({' and '.join(ENCODERS)}) are cut inside their blocks "
        "too; their skip connections travel with the messages.",
    ]
    titles = {"network": "network", "R": "R", "work": "work", "stages": "D", "layers": "layers"}
    titles |= {"cuts": "layers of each", "stage_ms": "ms of each", "bound": "bound"}
    titles |= {"bound_by_operations": "by counting", "even_bound": "as many layers each"}
    write_table(arguments, rows, caption, "lrlrrllrrr", titles)
    write_figures(arguments, lambda figure: _draw(figure, rows), (6.6, 3.6))


def _draw(figure: "Figure", rows: Sequence[Row]) -> None:
    from actionspan.files.figures import COLOURS, QUIET

    axes = figure.subplots()
    depths = sorted(map(int, distinct(rows, "stages")))
    for colour, network in zip(COLOURS, distinct(rows, "network"), strict=False):
        for column, look in (("bound_by_operations", "-"), ("even_bound", ":")):
            heights = [
                values(rows, column, network=network, stages=depth).mean() for depth in depths
            ]
            balanced = "balanced" if column == "bound_by_operations" else "as many layers each"
            label = f"{network}, {balanced}"
            axes.plot(depths, heights, look, color=colour, label=label, marker="o", markersize=3)
    axes.plot(depths, depths, color=QUIET, linewidth=0.8)
    axes.set(xlabel="stages D", ylabel="bound by counting", xticks=depths)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=7)
