"""The claims of paper 001 that its own tables decide, and rivals that are not built."""

from itertools import pairwise

from actionspan_papers.claims import Finding, by_print, found
from actionspan_papers.mtn.published import TABLES, TableName

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
    findings = []
    for name in ("table1", "table2"):
        rows = TABLES[name].rows
        for rival in [method for method in rows if method not in _BUILT]:
            for key, value in rows[rival].values.items():
                lead = float(rows["mtn"].values[key]) - float(value)
                measure, why = key.replace("thumos14_", "THUMOS14 "), f"Not built: {rival}"
                place = f"001, {name[:-1]} {name[-1]}"
                words = ("MTN finds more than a rival", place, "mtn", rival, measure)
                findings.append(found(*words, why, lead))
    return findings
