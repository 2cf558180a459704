"""Measure, emulate and bound the speed-up of pipelines, as in tables I and II of paper 002."""

import argparse

from actionspan.files.tables import add_outputs, write_figures, write_table
from actionspan.papers.partime.settings import SpeedSettings
from actionspan.papers.partime.speedup_report import draw, shown_rows, summary
from actionspan.settings import add_settings, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument(
        "--cores", type=int, default=2, help="that the rule has; more stages are only emulated"
    )
    add_outputs(parser, figure=True)
    add_settings(parser, SpeedSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write a row a network, work, number of stages and pair, and the figure."""
    settings = from_arguments(SpeedSettings, arguments)
    from actionspan.papers.partime.speedup_rows import speedup_rows

    rows = speedup_rows(settings, arguments.cores)
    caption, titles, align = summary(rows, settings, arguments.cores)
    write_table(arguments, rows, caption, align, titles, shown_rows(rows))
    write_figures(arguments, lambda figure: draw(figure, rows), (8.4, 3.8))
