"""Compare layers of transformers by how they were trained (CKA): figure 4 of paper 004."""

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
    """Write a row a way to train, pair of networks and layer, and the figure."""
    from actionspan.files.figures import COLOURS, INK
    from actionspan_papers.sbp.layers import COMPARED, similarity_rows
    from actionspan_papers.sbp.table3_rows import read_trained

    rows = similarity_rows(read_trained(arguments.networks))
    colours = dict(zip(COMPARED, (INK, *COLOURS), strict=False))
    lines, looks = {}, {}
    for start, style in (("other", "-"), ("same", "--")):
        for way in COMPARED:
            if any((row["way"], row["start"]) == (way, start) for row in rows):
                name = f"{way}, {start} start"
                lines[name] = {"way": way, "start": start}
                looks[name] = colours[way], style
    caption = [
        "Figure 4: linear CKA (unbiased HSIC) of all activations after each layer between networks "
        "trained end to end and networks trained in each way, over the validation clips of table "
        "3. Mean of the pairs of networks, lowest and highest. Layer 0 is what enters the first.",
        "Other start: networks of different seeds; between two trained end to end it is the "
        "ceiling. Same start: both began with the same random weights (the paper's began with the "
        "same trained ones).",
    ]
    shown, titles, align = shown_layers(rows, "cka", lines)
    write_table(arguments, rows, caption, align, titles, shown)

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        draw_layers(axes, rows, "cka", lines, looks)
        axes.set(title="likeness to end-to-end training", ylabel="linear CKA")
        figure.legend(loc="outside right center", frameon=False, fontsize=7.5)

    write_figures(arguments, draw, (7.2, 3.6))
