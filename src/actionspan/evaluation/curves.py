"""Recall curves of all methods: the table and the figures drawn from it."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from actionspan.errors import InputError
from actionspan.evaluation.summary import Record, read_records
from actionspan.files.storage import read_tsv, write_tsv


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

    rows = curve_rows(read_records(arguments.evaluations))
    write_tsv(arguments.out_table, CURVE_COLUMNS, rows)
    for figure in arguments.out_figures:
        draw_curves(figure, read_curves(arguments.out_table))


CURVE_COLUMNS = ("method", "kind", "x", "y", "low", "high", "videos")
AR_AGAINST_AN = "AR vs AN"
RECALL_AGAINST_TIOU = "recall vs tIoU at AN=100"
AREA = "AUC"


@dataclass(frozen=True, kw_only=True)
class Curve:
    """The points of a curve; `low` and `high` are the interval of each."""

    x: list[float] = field(default_factory=list)
    y: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Curves:
    """Both kinds of curve, and AUC with x = 100, by kind and method."""

    videos: int
    by_kind: dict[str, dict[str, Curve]]

    def ranked(self) -> list[str]:
        """Return the methods, the largest area first."""
        areas = self.by_kind[AREA]
        return sorted(areas, key=lambda method: -areas[method].y[0])


def curve_rows(records: Sequence[Record]) -> list[tuple[str | float, ...]]:
    """Return the rows of recall_curves.tsv, in `CURVE_COLUMNS`; y is a fraction."""
    rows: list[tuple[str | float, ...]] = []
    for record in records:
        method, videos = str(record["method"]), int(record["videos"])
        low, high = record["AR_interval"]
        for point in zip(record["AN"], record["AR"], low, high, strict=True):
            rows.append((method, AR_AGAINST_AN, *map(float, point), videos))
        for tiou, recalls in record["recall"].items():
            ends = record["recall@100_interval"][tiou]
            point = (tiou, recalls[-1], *ends)
            rows.append((method, RECALL_AGAINST_TIOU, *map(float, point), videos))
        area = [record["AUC"], *record["AUC_interval"]]
        rows.append((method, AREA, 100.0, *(percent / 100 for percent in area), videos))
    return rows


def read_curves(path: Path) -> Curves:
    """Read recall_curves.tsv.

    Raises:
        InputError: The file is missing, a row does not belong to it or a kind has no row.
    """
    curves: dict[str, dict[str, Curve]] = {AR_AGAINST_AN: {}, RECALL_AGAINST_TIOU: {}, AREA: {}}
    videos = 0
    for row, values in enumerate(read_tsv(path), start=2):
        try:
            curve = curves[values["kind"]].setdefault(values["method"], Curve())
            for name in ("x", "y", "low", "high"):
                getattr(curve, name).append(float(values[name]))
            videos = int(values["videos"])
        except (KeyError, TypeError, ValueError):
            raise InputError(
                f"{path}: row {row}: not a row of {', '.join(CURVE_COLUMNS)}"
            ) from None
    if not all(curves.values()):
        raise InputError(f"{path}: no rows for both kinds of curve and AUC; it needs them")
    return Curves(videos=videos, by_kind=curves)
