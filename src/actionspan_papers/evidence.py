"""Claims that a GPU decides: their sides (`PAPER/on_gpu.tsv`), and measurements (`gpu.tsv`).

`make gpu` writes `gpu.tsv`; rows not measured again keep their date.
"""

import math
from collections.abc import Mapping
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from actionspan.errors import InputError
from actionspan.storage.writing import read_tsv
from actionspan_papers.claims import Finding, Verdict, by_sign, claim_of, judge, table_of
from actionspan_papers.estimates import Estimate

_FOLDER = Path(__file__).parent
MEASUREMENTS = _FOLDER / "gpu.tsv"
_KEY, _NUMBERS = ("benchmark", "case", "quantity"), ("value", "least", "most")
COLUMNS = (*_KEY, *_NUMBERS, "machine", "torch", "date")


class Measured(NamedTuple):
    """The median of rounds, the least and the most of them, and where and when they ran."""

    value: float
    least: float
    most: float
    place: str = ""


Measurements = Mapping[tuple[str, ...], Measured]
"""By benchmark, case and quantity."""


def read_measurements(path: Path = MEASUREMENTS) -> Measurements:
    """Return the measurements of a table, if it exists; an empty `least` or `most` is the value.

    Raises:
        InputError: A column is missing, or a row is not a measurement.
    """
    rows = read_tsv(path) if path.exists() else []
    if missing := [name for name in COLUMNS if rows and name not in rows[0]]:
        raise InputError(f"{path}: no column {missing[0]!r}: not a table of make gpu")
    measured: dict[tuple[str, ...], Measured] = {}
    for number, row in enumerate(rows, start=2):
        key = tuple(row[name] for name in _KEY)
        try:
            value, least, most = (float(row[name] or row["value"]) for name in _NUMBERS)
            day = date.fromisoformat(row["date"])
        except ValueError:
            value = least = most = math.nan
        if key in measured or "" in key or not 0 < least <= value <= most < math.inf:
            wanted = "a case of its own, 0 < least ≤ value ≤ most, and a date such as 2026-11-26"
            raise InputError(f"{path}: row {number}, {', '.join(row.values())}: needs {wanted}")
        place = f"{row['machine']}, torch {row['torch']}, {day}"
        measured[key] = Measured(value, least, most, place)
    return measured


def on_gpu(paper: str, measurements: Measurements) -> list[Finding]:
    """Return the verdicts on the claims of a paper's on_gpu.tsv; the lower side is the better.

    Sides are cases, quotients of cases, or numbers; an interval reaches over all rounds.
    """
    findings = []
    for row in table_of(paper, "on_gpu"):
        own, other = (_side(measurements, row, row[side]) for side in ("own", "other"))
        ours: Estimate | str = "Not measured: make gpu writes it on a machine with a GPU."
        why = ""
        if own is not None and other is not None:
            low, high = other.least - own.most, other.most - own.least
            ours = Estimate(value=other.value - own.value, low=low, high=high)
            places = "; ".join(sorted({own.place, other.place} - {""}))
            why = f"{own.value:.4g} against {other.value:.4g} ({places})."
        findings.append(claim_of(row, rule=partial(_by_rounds, why)).judged(ours))
    return findings


def _side(measurements: Measurements, row: Mapping[str, str], text: str) -> Measured | None:
    """Return a side of a claim; None where a case of it was not measured."""
    case, _, divisor = text.partition(" ÷ ")
    if divisor:
        own, by = (_side(measurements, row, each) for each in (case, divisor))
        if own is None or by is None:
            return None
        return Measured(own.value / by.value, own.least / by.most, own.most / by.least, own.place)
    if text.replace(".", "").isdigit():
        return Measured(float(text), float(text), float(text))
    return measurements.get((row["benchmark"], text, row["quantity"]))


def _by_rounds(why: str, low: float, high: float, *how: Any) -> tuple[Verdict, str]:
    """Return the verdict by all rounds, or by the sign where there is one figure a side."""
    if low == high:
        return by_sign(f"One figure each: {why}", low)
    verdict, words = judge(low, high, *how)
    return verdict, f"{words} Over all rounds: {why}"
