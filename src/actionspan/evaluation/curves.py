"""Recall curves of all methods: the table and the figures of them."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from actionspan.evaluation.summary import Record, read_records
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
    from actionspan.evaluation.figures import draw_curves

    records = read_records(arguments.evaluations)
    write_tsv(arguments.out_table, CURVE_COLUMNS, curve_rows(records))
    for figure in arguments.out_figures:
        draw_curves(figure, records)


CURVE_COLUMNS = ("method", "kind", "x", "y", "low", "high", "videos")
AR_AGAINST_AN = "AR vs AN"
RECALL_AGAINST_TIOU = "recall vs tIoU at AN=100"
AREA = "AUC"
PANELS = (
    (AR_AGAINST_AN, "Average recall", "average number of proposals (AN)"),
    (RECALL_AGAINST_TIOU, "Recall at AN = 100", "tIoU threshold"),
)
"""Kind, title and the label of x of each panel of a figure."""


class Curve(NamedTuple):
    """The points of a curve as fractions; `low` and `high` are the interval of each."""

    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


def curves_of(record: Record) -> dict[str, Curve]:
    """Return a method's curves by kind; that of AUC is a point at x = 100."""
    recall, intervals = record["recall"], record["recall@100_interval"]
    low, high = zip(*(intervals[tiou] for tiou in recall), strict=True)
    area = [[percent / 100] for percent in (record["AUC"], *record["AUC_interval"])]
    return {
        AR_AGAINST_AN: Curve(record["AN"], record["AR"], *record["AR_interval"]),
        RECALL_AGAINST_TIOU: Curve(
            list(map(float, recall)), [recalls[-1] for recalls in recall.values()], low, high
        ),
        AREA: Curve([100.0], *area),
    }


def curve_rows(records: Sequence[Record]) -> Iterator[tuple[str | float, ...]]:
    """Yield the rows of recall_curves.tsv, in `CURVE_COLUMNS`."""
    for record in records:
        for kind, curve in curves_of(record).items():
            for point in zip(*curve, strict=True):
                yield (record["method"], kind, *map(float, point), record["videos"])
