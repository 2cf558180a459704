"""Measure the memory and the time of ways to train an encoder end to end."""

import argparse

from actionspan.settings import add_settings, from_arguments
from actionspan_papers.sbp.settings import MeasureSettings
from actionspan_papers.tables import add_outputs, write_figures, write_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_outputs(parser, figure=True)
    add_settings(parser, MeasureSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write a row a way and ratio, and the figure."""
    from actionspan_papers.sbp.measured_rows import (
        ALIGN,
        COLUMNS,
        caption,
        draw,
        measured_rows,
        shown_rows,
    )

    settings = from_arguments(MeasureSettings, arguments)
    rows = measured_rows(settings)
    write_table(arguments, rows, caption(settings), ALIGN, COLUMNS, shown_rows(rows))
    write_figures(arguments, lambda figure: draw(figure, rows), (9.2, 3.2))
