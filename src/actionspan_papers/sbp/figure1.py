"""Compare neighbouring frames inside a trained transformer: figure 1 of paper 004."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from actionspan_papers.sbp.layer_report import draw_layers, shown_layers
from actionspan_papers.tables import add_outputs, write_figures, write_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument(
        "--networks", type=Path, required=True, help="what `papers sbp table3` trained, .pt"
    )
    add_outputs(parser, figure=True)


def run(arguments: argparse.Namespace) -> None:
    """Write a row a seed, kind and layer, and the figure."""
    from actionspan.files.figures import COLOURS
    from actionspan_papers.sbp.clips import SECONDS
    from actionspan_papers.sbp.layers import KINDS, neighbour_rows
    from actionspan_papers.sbp.table3_rows import read_trained

    trained = read_trained(arguments.networks)
    rows = neighbour_rows(trained)
    lines = {kind: {"kind": kind} for kind in KINDS}
    looks = dict(zip(KINDS, zip(COLOURS, ("-", "--", "-"), strict=False), strict=False))
    apart = float(SECONDS) / trained.settings.frames
    caption = [
        f"Figure 1: cosine of what belongs to a frame and to the next one, {apart:g} s later, in "
        "the networks of table 3 that were trained end to end, over its validation clips: "
        "activations after each layer, the same without their mean over clips and frames, and the "
        "loss's gradients of them. Mean over seeds, lowest and highest. Layer 0 is what enters the "
        "first.",
        "Above the last layer all nodes go into one mean, so that their gradients there are alike "
        "by construction.",
    ]
    shown, titles, align = shown_layers(rows, "cosine", lines)
    write_table(arguments, rows, caption, align, titles, shown)

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        draw_layers(axes, rows, "cosine", lines, looks)
        axes.set(title="neighbouring frames", ylabel="cosine")
        figure.legend(loc="outside right center", frameon=False, fontsize=7.5)

    write_figures(arguments, draw, (7.2, 3.6))
