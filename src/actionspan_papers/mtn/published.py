"""The numbers of paper 001's tables (published.tsv), and the claims that they decide.

The values, in percent, are written as they are printed; fractions (0.756) are written as 75.6.
They were measured with the features of each paper, on all of ActivityNet-1.3 or THUMOS14.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Literal, NamedTuple

from actionspan_papers.claims import Claim, Finding, by_print, table_of

TableName = Literal["table1", "table2", "table3"]

THUMOS14 = ("thumos14_AR@50", "thumos14_AR@100", "thumos14_AR@200", "thumos14_AR@500")
ACTIVITYNET = ("AR@1", "AR@5", "AR@10", "AR@50", "AR@100", "AUC")
METRICS = ACTIVITYNET + THUMOS14


class PublishedRow(NamedTuple):
    """The numbers of a method as they are printed."""

    name: str = ""
    """The paper's name of it."""
    values: Mapping[str, str] = {}
    """By measure."""
    source: str = ""


class Table(NamedTuple):
    """A table of the paper: its measures, and its rows in the order in which we show them."""

    title: str
    metrics: tuple[str, ...]
    rows: Mapping[str, PublishedRow]
    """By our name of the method; where we do not build it, by the paper's."""
    others_below: bool = False
    """Whether our methods that it does not name are below its rows; else above them."""


def _table(number: int, title: str, metrics: tuple[str, ...]) -> Table:
    rows = {
        row["method"]: PublishedRow(
            row["name"], {metric: row[metric] for metric in metrics if row[metric]}, row["source"]
        )
        for row in table_of("mtn", "published")
        if row["table"] == f"table{number}"
    }
    return Table(title, metrics, rows, others_below=number == 3)


_TITLE1 = "proposals on ActivityNet-1.3 (validation), ActivityNet's protocol"
_TITLE2 = "proposals on THUMOS14 (test), THUMOS14's protocol"
_TITLE3 = "ablation of MTN on ActivityNet-1.3, ActivityNet's protocol"

TABLES: Mapping[TableName, Table] = {
    "table1": _table(1, _TITLE1, ("AR@100", "AUC")),
    "table2": _table(2, _TITLE2, THUMOS14),
    "table3": _table(3, _TITLE3, ACTIVITYNET),
}

_BUILT = ("tag", "origin", "se", "dense", "mtn")
_ORDER: dict[TableName, tuple[str, ...]] = {
    "table1": ("tag", "Dai et al.", "Yao et al.", "origin", "mtn"),
    "table2": ("DAPs", "SCNN-prop", "SST", "TURN", "origin", "mtn"),
    "table3": ("origin", "se", "dense", "mtn"),
}
"""The printed order of the rows."""


def printed_findings() -> list[Finding]:
    """Judge by the printed tables that MTN is the best, and that each row is above the last."""
    margins, words = {}, {}
    for name, order in _ORDER.items():
        rows = {method: TABLES[name].rows[method].values for method in order}
        pairs = {"best": [(order[-1], other) for other in order[:-1]], "rising": pairwise(order)}
        for kind, compared in pairs.items():
            leads = [
                (float(rows[high][key]) - float(rows[low][key]), f"{high} over {low}, {key}")
                for low, high in (sorted(pair, key=order.index) for pair in compared)
                for key in rows[high]
                if key in rows[low]
            ]
            margins[f"{kind}_{name}"], words[f"{kind}_{name}"] = min(leads)
    return [*by_print("mtn", margins, words), *_rivals()]


def _rivals() -> list[Finding]:
    """Return a row for each printed number of a rival that is not built."""
    text, findings = "MTN finds more than a rival", []
    for name in ("table1", "table2"):
        rows = TABLES[name].rows
        for rival in [method for method in rows if method not in _BUILT]:
            for key, value in rows[rival].values.items():
                lead = float(rows["mtn"].values[key]) - float(value)
                measure = key.replace("thumos14_", "THUMOS14 ")
                place = f"001, table {name[-1]}"
                claim = Claim(text, place, "mtn", rival, measure, published=lead)
                findings.append(claim.judged(f"Not built: {rival}"))
    return findings
