"""Recall curves of all methods: the table and the figures of them."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from actionspan.evaluation.records import Record, curves_of
from actionspan.evaluation.summary import read_records
from actionspan.storage.writing import write_tsv


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--evaluations", type=Path, nargs="+", required=True, help="of all methods")
    parser.add_argument("--out-table", type=Path, required=True, help="method, kind, x, y")
    parser.add_argument(
        "--out-figures", type=Path, nargs="*", default=[], metavar="FILE", help=".svg or .png"
    )


def run(arguments: argparse.Namespace) -> None:
    """Write the table of recall curves, and draw it."""
    from actionspan.report.figures.methods import draw_curves

    records = read_records(arguments.evaluations)
    write_tsv(arguments.out_table, CURVE_COLUMNS, curve_rows(records))
    for figure in arguments.out_figures:
        draw_curves(figure, records)


CURVE_COLUMNS = ("method", "kind", "x", "y", "low", "high", "videos")


def curve_rows(records: Sequence[Record]) -> Iterator[tuple[str | float, ...]]:
    """Yield the rows of recall_curves.tsv, in `CURVE_COLUMNS`."""
    for record in records:
        for kind, curve in curves_of(record).items():
            for point in zip(*curve, strict=True):
                yield (record["method"], kind, *map(float, point), record["videos"])
