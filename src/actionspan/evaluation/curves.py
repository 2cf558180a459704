"""Recall curves of all methods: the table and the figures drawn from it."""

import argparse
from pathlib import Path

from actionspan.evaluation.records import read_records


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--evaluations", type=Path, nargs="+", required=True, help="of all methods")
    parser.add_argument("--out-table", type=Path, required=True, help="method, kind, x, y")
    parser.add_argument(
        "--out-figures", type=Path, nargs="*", default=[], metavar="FILE", help=".svg or .png"
    )


def run(arguments: argparse.Namespace) -> None:
    """Write the table of recall curves, and draw it."""
    from actionspan.evaluation.recall_curves import draw_curves, read_curves, write_curves

    write_curves(arguments.out_table, read_records(arguments.evaluations))
    for figure in arguments.out_figures:
        draw_curves(figure, read_curves(arguments.out_table))
