"""Count the bytes that the stages of a pipeline need in each gradient mode."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from actionspan.settings import add_settings, from_arguments
from actionspan_papers.partime.settings import MODES, SpeedSettings
from actionspan_papers.rows import Row, distinct, values
from actionspan_papers.tables import add_outputs, write_figures, write_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_outputs(parser, figure=True)
    add_settings(parser, SpeedSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write a row a network, number of stages, mode and stage, and the figure."""
    settings = from_arguments(SpeedSettings, arguments)
    from actionspan_papers.partime.bytes_rows import PARTS, memory_rows

    rows = memory_rows(settings)
    caption = [
        "Bytes of each stage that learns with SGD, by the closed form: "
        f"{', '.join(PARTS)}; saved tensors are those of one sample. `counted` is what the stage "
        "really kept of the past, to compare with `kept`.",
        "PipeDream's D − h + 1 versions of the weights hold for its timetable; in this one `stash` "
        "needs 2(D − h) beside those of now. Cuts are those of counted multiplications.",
    ]
    titles = {"network": "network", "stages": "D", "mode": "mode", "stage": "stage"}
    titles |= {name: name for name in PARTS} | {"total": "total", "counted": "counted"}
    write_table(arguments, rows, caption, "lrlr" + "r" * (len(PARTS) + 2), titles)
    write_figures(arguments, lambda figure: _draw(figure, rows), (8.4, 3.4))


def _draw(figure: "Figure", rows: Sequence[Row]) -> None:
    from actionspan.files.figures import COLOURS

    networks = distinct(rows, "network")
    panels = figure.subplots(1, len(networks), squeeze=False)[0]
    for axes, network in zip(panels, networks, strict=True):
        depths = distinct(rows, "stages")
        for place, mode in enumerate(MODES):
            totals = [
                sum(values(rows, "total", network=network, stages=depth, mode=mode)) / 2**20
                for depth in depths
            ]
            places = [number + 0.27 * (place - 1) for number in range(len(depths))]
            axes.bar(places, totals, 0.25, color=COLOURS[place], label=mode)
        axes.set_xticks(range(len(depths)), depths)
        axes.set(title=network, xlabel="stages D")
    panels[0].set_ylabel("all stages (MiB)")
    panels[0].legend(frameon=False)
