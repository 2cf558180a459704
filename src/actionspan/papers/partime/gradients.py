"""Compare the gradients of pipelines with the true ones over the speed of streams."""

import argparse
from pathlib import Path

from actionspan.files.tables import add_outputs, write_figures, write_table
from actionspan.papers.partime.gradients_report import draw, shown_rows, summary
from actionspan.papers.partime.runs import settings_of
from actionspan.papers.partime.settings import GradientSettings, PartimeSettings
from actionspan.settings import add_settings, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--frames", type=Path, required=True, help="file of `partime frames`")
    add_outputs(parser, figure=True)
    add_settings(parser, PartimeSettings)
    add_settings(parser, GradientSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write a row a stream, number of stages, mode, stage and seed, and the figure."""
    own, settings = settings_of(arguments), from_arguments(GradientSettings, arguments)
    from actionspan.papers.partime.footage import Footage
    from actionspan.papers.partime.gradients_rows import gradient_rows

    rows = gradient_rows(Footage(arguments.frames), own, settings)
    caption, titles, align = summary(rows, own, settings)
    shown = shown_rows(rows, own)
    write_table(arguments, rows, caption, align, titles, shown)
    write_figures(arguments, lambda figure: draw(figure, rows, own, settings), (8.4, 6.6))
