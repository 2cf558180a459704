"""Compare the gradients that samplers keep with the full gradient, on real snippets."""

import argparse
from pathlib import Path

from actionspan.files.tables import add_outputs, write_figures, write_table
from actionspan.papers.sbp.settings import GradientSettings, SbpSettings
from actionspan.settings import add_settings, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_snippets(parser)
    add_outputs(parser, figure=True)
    add_settings(parser, SbpSettings)
    add_settings(parser, GradientSettings)


def add_snippets(parser: argparse.ArgumentParser) -> None:
    """Add the flags of what is learned from."""
    parser.add_argument(
        "--snippets", type=Path, nargs="+", required=True, help="stores of `finetune store`"
    )
    parser.add_argument("--annotations", type=Path, required=True, help="annotations.json")


def run(arguments: argparse.Namespace) -> None:
    """Write a row a video, sampler and keep ratio, a row a video, block and quantity; and draw."""
    own = from_arguments(SbpSettings, arguments)
    settings = from_arguments(GradientSettings, arguments)
    from actionspan.papers.sbp.gradients_report import draw, shown_rows, summary
    from actionspan.papers.sbp.gradients_rows import gradient_rows

    rows = gradient_rows(arguments.snippets, arguments.annotations, settings)
    caption, titles, align = summary(rows, own.confidence, settings)
    write_table(arguments, rows, caption, align, titles, shown_rows(rows, own.confidence))
    write_figures(arguments, lambda figure: draw(figure, rows), (8.4, 3.9))
