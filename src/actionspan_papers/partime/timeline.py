"""Draw which stage works on which sample when, as in figures 1 and 2 of paper 002."""

import argparse

from actionspan.settings import add_settings, from_arguments
from actionspan_papers.partime.settings import SpeedSettings
from actionspan_papers.partime.timeline_report import draw, shown_rows
from actionspan_papers.tables import add_outputs, write_figures, write_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_outputs(parser, figure=True)
    add_settings(parser, SpeedSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write a row an event of stages that learn, and the figure."""
    settings = from_arguments(SpeedSettings, arguments)
    from actionspan_papers.partime.timeline_rows import timeline_rows

    rows = timeline_rows(settings)
    caption = [
        "Events of pipelines that learn, from the clocks of their threads; the TSV has every one. "
        "Measured: two stages of the plain convolutions. Emulated: four stages that wait.",
        "Delay: steps from the forward pass of a sample in a stage to the backward pass of its "
        "loss's gradient there; the paper's is 2(D − h) for stage h.",
    ]
    titles = {"kind": "kind", "stages": "D", "stage": "stage h"}
    titles |= {"delay": "delay, steps", "published": "2(D − h)", "first": "first learned at step"}
    write_table(arguments, rows, caption, "lrrrrr", titles, shown_rows(rows))
    write_figures(arguments, lambda figure: draw(figure, rows), (8.4, 3.6))
