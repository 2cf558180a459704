"""Recall curves of all methods: the table and the figures drawn from it."""

import argparse
from pathlib import Path

from actionspan.evaluation.records import read_records
from actionspan.files.storage import write_tsv


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--evaluations", type=Path, nargs="+", required=True, help="of all methods")
    parser.add_argument("--out-table", type=Path, required=True, help="method, kind, x, y")
    parser.add_argument(
        "--out-figures", type=Path, nargs="*", default=[], metavar="FILE", help=".svg or .png"
    )


def run(arguments: argparse.Namespace) -> None:
    """Write the table of recall curves, and draw it."""
    from actionspan.evaluation import recall_curves

    rows = recall_curves.curve_rows(read_records(arguments.evaluations))
    write_tsv(arguments.out_table, recall_curves.CURVE_COLUMNS, rows)
    for figure in arguments.out_figures:
        recall_curves.draw_curves(figure, recall_curves.read_curves(arguments.out_table))
