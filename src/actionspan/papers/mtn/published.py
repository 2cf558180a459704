"""The published numbers of paper 001's tables, each with its source, in percent.

The values are written as they are printed there; fractions (0.756) are written in percent (75.6).
Published numbers were measured with the features of each paper, on the whole of ActivityNet-1.3
or THUMOS14.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

TableName = Literal["table1", "table2", "table3"]

THUMOS14 = ("thumos14_AR@50", "thumos14_AR@100", "thumos14_AR@200", "thumos14_AR@500")
ACTIVITYNET = ("AR@1", "AR@5", "AR@10", "AR@50", "AR@100", "AUC")


@dataclass(frozen=True, kw_only=True)
class Table:
    """One table of the paper: its measures, and its rows in the order in which we show them."""

    title: str
    metrics: tuple[str, ...]
    rows: tuple["PublishedRow", ...]
    others_below: bool = False
    """Whether our methods that it does not name stand below its rows; else above them."""


@dataclass(frozen=True, kw_only=True)
class PublishedRow:
    """One method's numbers as they are printed."""

    method: str
    """Our name of the method; where we do not build it, the paper's."""
    name: str
    """How the paper calls it."""
    values: Mapping[str, str]
    source: str


def _row(
    method: str, name: str, metrics: tuple[str, ...], printed: str, source: str
) -> PublishedRow:
    """Return a row from its printed numbers; a dash stands for none."""
    cells = zip(metrics, printed.split(), strict=True)
    values = {metric: cell for metric, cell in cells if cell != "-"}
    return PublishedRow(method=method, name=name, values=values, source=source)


_ONE = ("AR@100", "AUC")
_ABLATION = "001, table 3"
_THUMOS14 = "001, table 2"

TABLES: Mapping[TableName, Table] = {
    "table1": Table(
        title="proposals on ActivityNet-1.3 (validation), ActivityNet's protocol",
        metrics=_ONE,
        rows=(
            _row(
                "tag",
                "Zhao et al. (TAG)",
                _ONE,
                "65.3 53.02",
                "001, table 1 (BSN's paper prints another AR@100 for this row)",
            ),
            _row("Dai et al.", "Dai et al.", _ONE, "- 59.58", "001, table 1"),
            _row("Yao et al.", "Yao et al.", _ONE, "- 63.12", "001, table 1"),
            _row(
                "origin",
                "Lin et al. (BSN)",
                _ONE,
                "74.8 66.17",
                "001, table 1 (BSN's paper prints AR@100 74.16)",
            ),
            _row("se", "SE-ConvNet", _ONE, "75.0 66.57", _ABLATION),
            _row("dense", "Mul-DenseNet", _ONE, "75.1 66.85", _ABLATION),
            _row("mtn", "MTN", _ONE, "75.6 67.26", "001, table 1"),
        ),
    ),
    "table2": Table(
        title="proposals on THUMOS14 (test), THUMOS14's protocol",
        metrics=THUMOS14,
        rows=(
            _row("DAPs", "DAPs", THUMOS14, "13.56 23.83 33.96 49.29", _THUMOS14),
            _row("SCNN-prop", "SCNN-prop", THUMOS14, "17.22 26.17 37.01 51.57", _THUMOS14),
            _row("SST", "SST", THUMOS14, "19.90 28.36 37.90 51.58", _THUMOS14),
            _row("TURN", "TURN", THUMOS14, "19.63 27.96 38.34 53.52", _THUMOS14),
            _row(
                "origin",
                "BSN",
                THUMOS14,
                "29.58 37.38 45.55 54.67",
                "001, table 2 (BSN on C3D features; 37.46 46.06 53.21 60.64 on two-stream ones)",
            ),
            _row(
                "mtn",
                "MTN",
                THUMOS14,
                "30.61 38.12 46.24 55.31",
                "001, table 2 (its features are not named)",
            ),
        ),
    ),
    "table3": Table(
        title="ablation of MTN on ActivityNet-1.3, ActivityNet's protocol",
        metrics=ACTIVITYNET,
        others_below=True,
        rows=(
            _row("origin", "Origin", ACTIVITYNET, "29.2 46.9 54.9 69.6 74.8 66.17", _ABLATION),
            _row("se", "SE-ConvNet", ACTIVITYNET, "30.3 47.6 55.3 69.9 75.0 66.57", _ABLATION),
            _row("dense", "Mul-DenseNet", ACTIVITYNET, "31.7 48.2 55.6 70.2 75.1 66.85", _ABLATION),
            _row("mtn", "MTN", ACTIVITYNET, "33.2 49.0 56.2 70.6 75.6 67.26", _ABLATION),
        ),
    ),
}


def published_value(table: TableName, method: str, metric: str) -> float | None:
    """Return a printed number in percent; None where the table has none."""
    for row in TABLES[table].rows:
        if row.method == method and metric in row.values:
            return float(row.values[metric])
    return None
