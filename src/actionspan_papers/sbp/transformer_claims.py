"""The claims of paper 004 about transformers (tables 1 and 3, figures 1 and 4)."""

from collections.abc import Sequence

import numpy as np

from actionspan.arrays import Float64
from actionspan_papers.claims import Finding, found
from actionspan_papers.estimates import Estimate, alike, over_seeds
from actionspan_papers.rows import distinct, values
from actionspan_papers.sbp.published import MOST_LOST
from actionspan_papers.sbp.verdicts import Row, at_most, cell, turned

_SBP, _CHECKERBOARD, _DROPOUT = "SBP, frame-wise", "SBP, checkerboard", "frame dropout"
_HIGH = 0.9
"""Section 3.1.2: CKA with end-to-end training "is very high (> 0.9) for the first 6 layers"."""


def accuracy_findings(rows: Sequence[Row], margin: float) -> list[Finding]:
    """Judge tables 1 and 3; `margin` is the points within which two ways are alike."""
    less = cell(rows, "less_than_end_to_end", way=_SBP)
    alike_within = f"frame-wise and checkerboard sampling are alike (within {margin:g} points)"
    little = f"SBP loses less than {MOST_LOST:g} point to end-to-end training"
    claims = (
        (
            *("SBP is above frame dropout", "004, table 1", _SBP, _DROPOUT),
            *(cell(rows, "above_frame_dropout", way=_SBP), 78.2 - 76.3),
        ),
        (
            *("end-to-end training is above SBP", "004, table 1", "end-to-end", _SBP),
            *(less, 78.8 - 78.2),
        ),
        (
            *(little, "004, abstract", f"{_SBP}, +{MOST_LOST:g}", "end-to-end"),
            *(at_most(MOST_LOST, turned(less)), 78.2 - 78.8 + MOST_LOST),
        ),
        (
            *(alike_within, "004, table 3", f"{margin:g}", f"|{_CHECKERBOARD} - {_SBP}|"),
            alike(margin, cell(rows, "above_frame_wise", way=_CHECKERBOARD)),
            margin - abs(78.3 - 78.2),
        ),
    )
    few = len(rows[0]["top1_of_seeds"].split()) < 2
    one_seed, measure = "One seed says nothing about the next.", "top-1, rendered clips"
    return [
        found(text, source, better, worse, measure, one_seed if few else difference, published)
        for text, source, better, worse, difference, published in claims
    ]


def depth_findings(rows: Sequence[Row], confidence: float) -> list[Finding]:
    """Judge figure 1: neighbouring frames are alike at the bottom, and unlike at the top.

    What enters the first layer is left out, and so is what leaves the last: all nodes go into one
    mean there, so that their gradients are alike by construction.
    """
    layers = distinct(rows, "layer")[1:-1]
    third = max(1, len(layers) // 3)
    findings = []
    for kind in distinct(rows, "kind"):
        low, high = (
            np.mean([values(rows, "cosine", kind=kind, layer=each) for each in part], axis=0)
            for part in (layers[:third], layers[-third:])
        )
        claim = found(
            f"{kind} of neighbouring frames are more alike at the bottom than at the top",
            "004, figure 1",
            f"lowest {third} of {len(layers)} layers",
            f"highest {third}",
            "cosine, transformer",
            _over_seeds(low - high, confidence),
            form="+.3f",
        )
        findings.append(claim)
    return findings


def likeness_findings(rows: Sequence[Row], confidence: float) -> list[Finding]:
    """Judge figure 4: CKA with the end-to-end network of the same first weights."""
    layers = distinct(rows, "layer")[1:]
    third, half = max(1, len(layers) // 3), max(1, len(layers) // 2)
    highest = f"highest {third} of {len(layers)} layers"
    lowest = f"lowest {half} of {len(layers)} layers"
    difference = _likeness(rows, _SBP, layers[-third:]) - _likeness(rows, _DROPOUT, layers[-third:])
    above = _likeness(rows, _DROPOUT, layers[:half]) - _HIGH
    claims = (
        (
            "SBP is more like end-to-end training than frame dropout is, at the top",
            *("004, figure 4", f"{_SBP}, {highest}", _DROPOUT, difference),
        ),
        (
            f"frame dropout is very like end-to-end training at the bottom (above {_HIGH:g})",
            *("004, section 3.1.2", f"{_DROPOUT}, {lowest}", f"{_HIGH:g}", above),
        ),
    )
    measure = "CKA, same first weights"
    return [
        found(text, source, better, worse, measure, _over_seeds(each, confidence), form="+.3f")
        for text, source, better, worse, each in claims
    ]


def _likeness(rows: Sequence[Row], way: str, layers: Sequence[str]) -> Float64:
    """Return (S,) the mean CKA over layers of each seed's pair."""
    each = [values(rows, "cka", way=way, start="same", layer=layer) for layer in layers]
    return np.asarray(np.mean(each, axis=0), np.float64)


def _over_seeds(differences: Float64, confidence: float) -> Estimate | str:
    if len(differences) < 2:
        return "One seed says nothing about the next."
    return over_seeds([differences], confidence, form="+.3f")
