"""Judge paper 004's claims on layers and gradients: figures 1 and 4, and samplers of rows."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from actionspan.arrays import Float64
from actionspan_papers import claims
from actionspan_papers.claims import Finding
from actionspan_papers.estimates import Estimate, alike, at_most, over_seeds
from actionspan_papers.experiments import values, where
from actionspan_papers.kinds import DataFrame
from actionspan_papers.sbp.published import DROPOUT, FRAMES
from actionspan_papers.sbp.settings import DEPTH, QUANTITIES, SAMPLING

_NEAR = 0.05
"""By how much a cosine may be lower and still count as equal."""
_HIGH = 0.9
"""Section 3.1.2: CKA with end-to-end training "is very high (> 0.9) for the first 6 layers"."""
UNIFORM = "uniform_random"
FEW = {
    "seed": "One seed shows nothing about the next.",
    "video": "Fewer than two videos have no interval over videos.",
}
_measured = partial(claims.measured, "sbp")


def _over(unit: str, differences: Float64, confidence: float) -> Estimate | str:
    """Return the mean difference over seeds or videos (Student's t), or why there is none."""
    if len(differences) < 2:
        return FEW[unit]
    if np.isnan(differences).any():
        return f"Some {unit} has no value."
    return over_seeds([differences], confidence)


def _mean_over(rows: DataFrame, column: str, name: str, parts: Sequence[Any]) -> Float64:
    """Return (n,) the mean over parts of a network, such as layers, for each seed or video."""
    each = [values(rows, column, **{name: part}) for part in parts]
    return np.asarray(np.mean(each, axis=0), np.float64)


def depth_findings(rows: DataFrame, confidence: float) -> list[Finding]:
    """Judge figure 1: neighbouring frames are alike at the bottom, and unlike at the top.

    What enters the first layer is left out, and so is what leaves the last: all nodes go into one
    mean there, so that their gradients are alike by construction.
    """
    layers = rows["layer"].unique()[1:-1]
    third = max(1, len(layers) // 3)
    findings = []
    for kind in rows["kind"].unique():
        own = where(rows, kind=kind)
        low = _mean_over(own, "cosine", "layer", layers[:third])
        high = _mean_over(own, "cosine", "layer", layers[-third:])
        case = {"kind": kind, "third": third, "layers": len(layers)}
        findings += _measured({"frames": _over("seed", low - high, confidence)}, case)
    return findings


def likeness_findings(rows: DataFrame, confidence: float) -> list[Finding]:
    """Judge figure 4: CKA with the end-to-end network of the same first weights."""
    layers = rows["layer"].unique()[1:]
    third, half = max(1, len(layers) // 3), max(1, len(layers) // 2)
    sbp, dropout = (where(rows, way=way, start="same") for way in (FRAMES, DROPOUT))
    top = _mean_over(sbp, "cka", "layer", layers[-third:])
    top_of_dropout = _mean_over(dropout, "cka", "layer", layers[-third:])
    bottom = _mean_over(dropout, "cka", "layer", layers[:half])
    ours = {
        "like": _over("seed", top - top_of_dropout, confidence),
        "very_like": _over("seed", bottom - _HIGH, confidence),
    }
    case = {"third": third, "half": half, "layers": len(layers), "high": _HIGH}
    return _measured(ours, case)


def gradient_findings(rows: DataFrame, confidence: float) -> list[Finding]:
    """Judge the claims on depth (figure 1), samplers, and importance sampling."""
    depth, sampling = where(rows, part=DEPTH), where(rows, part=SAMPLING)
    findings = []
    blocks = depth["block"].unique()
    third = max(1, len(blocks) // 3)
    for quantity, name in QUANTITIES.items():
        own = where(depth, quantity=quantity)
        low = _mean_over(own, "neighbours", "block", blocks[:third])
        high = _mean_over(own, "neighbours", "block", blocks[-third:])
        place = "not in the paper" if quantity == "parameter_gradients" else "004, figure 1"
        case = {"name": name, "place": place, "third": third, "blocks": len(blocks)}
        findings += _measured({"snippets": _over("video", low - high, confidence)}, case)
    ratios = sampling["keep_ratio"].unique()

    def above(sampler: str, ratio: float, other_ratio: float) -> Estimate | str:
        """Compare the cosines of a sampler with uniform sampling's at another ratio."""
        ours = values(sampling, "cosine", sampler=sampler, keep_ratio=ratio)
        theirs = values(sampling, "cosine", sampler=UNIFORM, keep_ratio=other_ratio)
        return _over("video", ours - theirs, confidence)

    for ratio in ratios:
        for sampler in ("diverse_feature", "diverse_gradient"):
            case = {"near": _NEAR, "sampler": sampler, "ratio": ratio}
            findings += _measured({"alike": alike(_NEAR, above(sampler, ratio, ratio))}, case)
    for ratio in ratios:
        ours = {"nearer": above("importance", ratio, ratio)}
        if 2 * ratio in ratios:
            ours["as_near"] = at_most(_NEAR, above("importance", ratio, 2 * ratio))
        findings += _measured(ours, {"near": _NEAR, "ratio": ratio, "twice": 2 * ratio})
    return findings
