"""The claims of paper 004 about transformers (tables 1 and 3, figures 1 and 4)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from actionspan.arrays import Float64
from actionspan.papers.claims import Claim, Finding
from actionspan.papers.estimates import Estimate, alike, over_seeds
from actionspan.papers.rows import distinct, values
from actionspan.papers.sbp.published_detection import MOST_LOST
from actionspan.papers.sbp.verdicts import Row, at_most, cell, turned

_SBP, _CHECKERBOARD, _DROPOUT = "SBP, frame-wise", "SBP, checkerboard", "frame dropout"
_HIGH = 0.9
"""Section 3.1.2: CKA with end-to-end training "is very high (> 0.9) for the first 6 layers"."""


def accuracy_findings(rows: Sequence[Row], margin: float) -> list[Finding]:
    """Judge tables 1 and 3; `margin` is the points within which two ways are alike."""
    shared: dict[str, Any] = {"measure": "top-1, rendered clips", "key": "top1"}
    above = Claim(
        text="SBP is above frame dropout",
        source="004, table 1",
        better=_SBP,
        worse=_DROPOUT,
        published=78.2 - 76.3,
        **shared,
    )
    below = Claim(
        text="end-to-end training is above SBP",
        source="004, table 1",
        better="end-to-end",
        worse=_SBP,
        published=78.8 - 78.2,
        **shared,
    )
    little = Claim(
        text=f"SBP loses less than {MOST_LOST:g} point to end-to-end training",
        source="004, abstract",
        better=f"{_SBP}, +{MOST_LOST:g}",
        worse="end-to-end",
        published=78.2 - 78.8 + MOST_LOST,
        **shared,
    )
    same = Claim(
        text=f"frame-wise and checkerboard sampling are alike (within {margin:g} points)",
        source="004, table 3",
        better=f"{margin:g}",
        worse=f"|{_CHECKERBOARD} - {_SBP}|",
        published=margin - abs(78.3 - 78.2),
        **shared,
    )
    if len(rows[0]["top1_of_seeds"].split()) < 2:
        claims = (above, below, little, same)
        return [claim.judged("One seed says nothing about the next.") for claim in claims]
    less = cell(rows, "less_than_end_to_end", way=_SBP)
    return [
        above.judged(cell(rows, "above_frame_dropout", way=_SBP)),
        below.judged(less),
        little.judged(at_most(MOST_LOST, turned(less))),
        same.judged(alike(margin, cell(rows, "above_frame_wise", way=_CHECKERBOARD))),
    ]


def depth_findings(rows: Sequence[Row], confidence: float) -> list[Finding]:
    """Judge figure 1: neighbouring frames are alike at the bottom, and unlike at the top.

    What enters the first layer is left out, and so is what leaves the last: all nodes go into one
    mean there, so that their gradients are alike by construction.
    """
    layers = distinct(rows, "layer")[1:-1]
    third = max(1, len(layers) // 3)
    found = []
    for kind in distinct(rows, "kind"):
        claim = Claim(
            text=f"{kind} of neighbouring frames are more alike at the bottom than at the top",
            source="004, figure 1",
            better=f"lowest {third} of {len(layers)} layers",
            worse=f"highest {third}",
            measure="cosine, transformer",
            key=kind,
            form="+.3f",
        )
        low, high = (
            np.mean([values(rows, "cosine", kind=kind, layer=each) for each in part], axis=0)
            for part in (layers[:third], layers[-third:])
        )
        found.append(claim.judged(_over_seeds(low - high, confidence)))
    return found


def likeness_findings(rows: Sequence[Row], confidence: float) -> list[Finding]:
    """Judge figure 4: CKA with the end-to-end network of the same first weights."""
    layers = distinct(rows, "layer")[1:]
    third, half = max(1, len(layers) // 3), max(1, len(layers) // 2)
    shared: dict[str, Any] = {"measure": "CKA, same first weights", "form": "+.3f"}
    top = Claim(
        text="SBP is more like end-to-end training than frame dropout is, at the top",
        source="004, figure 4",
        better=f"{_SBP}, highest {third} of {len(layers)} layers",
        worse=_DROPOUT,
        key="top",
        **shared,
    )
    high = Claim(
        text=f"frame dropout is very like end-to-end training at the bottom (above {_HIGH:g})",
        source="004, section 3.1.2",
        better=f"{_DROPOUT}, lowest {half} of {len(layers)} layers",
        worse=f"{_HIGH:g}",
        key="bottom",
        **shared,
    )
    difference = _likeness(rows, _SBP, layers[-third:]) - _likeness(rows, _DROPOUT, layers[-third:])
    return [
        top.judged(_over_seeds(difference, confidence)),
        high.judged(_over_seeds(_likeness(rows, _DROPOUT, layers[:half]) - _HIGH, confidence)),
    ]


def _likeness(rows: Sequence[Row], way: str, layers: Sequence[str]) -> Float64:
    """Return (S,) the mean CKA over layers of each seed's pair."""
    each = [values(rows, "cka", way=way, start="same", layer=layer) for layer in layers]
    return np.asarray(np.mean(each, axis=0), np.float64)


def _over_seeds(differences: Float64, confidence: float) -> Estimate | str:
    if len(differences) < 2:
        return "One seed says nothing about the next."
    return over_seeds([differences], confidence, form="+.3f")
