"""Learn optical flow continually from frames in pipelines, as in figures 4 and 5 of paper 002."""

import argparse
from pathlib import Path

from actionspan.files.tables import add_outputs, write_figures, write_table
from actionspan.papers.partime.flow_report import draw, shown_rows, summary
from actionspan.papers.partime.runs import settings_of
from actionspan.papers.partime.settings import FlowLearningSettings, PartimeSettings
from actionspan.settings import add_settings, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--frames", type=Path, required=True, help="file of `partime frames`")
    add_outputs(parser, figure=True)
    add_settings(parser, PartimeSettings)
    add_settings(parser, FlowLearningSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write a row a way of learning, rate, seed and window of time, and the figure."""
    own, settings = settings_of(arguments), from_arguments(FlowLearningSettings, arguments)
    from actionspan.papers.partime.flow_rows import flow_rows
    from actionspan.papers.partime.footage import Footage

    rows = flow_rows(Footage(arguments.frames), own, settings)
    caption, titles, align = summary(own, settings)
    write_table(arguments, rows, caption, align, titles, shown_rows(rows, own))
    write_figures(arguments, lambda figure: draw(figure, rows, own, settings), (8.4, 3.6))
