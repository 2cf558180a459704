"""The claims of paper 004 about layers and gradients (figures 1 and 4), over seeds or videos."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from actionspan.arrays import Float64
from actionspan_papers.claims import Finding, found
from actionspan_papers.estimates import Estimate, alike, at_most, over_seeds
from actionspan_papers.experiments import values, where
from actionspan_papers.kinds import DataFrame
from actionspan_papers.sbp.published import DROPOUT, FRAMES
from actionspan_papers.sbp.settings import DEPTH, QUANTITIES, SAMPLING

_OURS = "not in the paper"
NEAR = 0.05
"""By how much a cosine may be lower and still count as equal."""
_HIGH = 0.9
"""Section 3.1.2: CKA with end-to-end training "is very high (> 0.9) for the first 6 layers"."""
_FEW = {
    "seed": "One seed shows nothing about the next.",
    "video": "Fewer than two videos have no interval over videos.",
}


def _over(unit: str, differences: Float64, confidence: float) -> Estimate | str:
    """Return the mean difference over seeds or videos (Student's t), or why there is none."""
    if len(differences) < 2:
        return _FEW[unit]
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
        claim = found(
            f"{kind} of neighbouring frames are more alike at the bottom than at the top",
            "004, figure 1",
            f"lowest {third} of {len(layers)} layers",
            f"highest {third}",
            "cosine, transformer",
            _over("seed", low - high, confidence),
            form="+.3f",
        )
        findings.append(claim)
    return findings


def likeness_findings(rows: DataFrame, confidence: float) -> list[Finding]:
    """Judge figure 4: CKA with the end-to-end network of the same first weights."""
    layers = rows["layer"].unique()[1:]
    third, half = max(1, len(layers) // 3), max(1, len(layers) // 2)
    sbp, dropout = (where(rows, way=way, start="same") for way in (FRAMES, DROPOUT))
    top = _mean_over(sbp, "cka", "layer", layers[-third:])
    top_of_dropout = _mean_over(dropout, "cka", "layer", layers[-third:])
    bottom = _mean_over(dropout, "cka", "layer", layers[:half])
    claims = (
        ("SBP is more like end-to-end training than frame dropout is, at the top",
         "004, figure 4", f"{FRAMES}, highest {third} of {len(layers)} layers", DROPOUT,
         top - top_of_dropout),
        (f"frame dropout is very like end-to-end training at the bottom (above {_HIGH:g})",
         "004, section 3.1.2", f"{DROPOUT}, lowest {half} of {len(layers)} layers", f"{_HIGH:g}",
         bottom - _HIGH),
    )  # fmt: skip
    measure = "CKA, same first weights"
    return [
        found(text, place, better, worse, measure, _over("seed", each, confidence), form="+.3f")
        for text, place, better, worse, each in claims
    ]


def gradient_findings(rows: DataFrame, confidence: float) -> list[Finding]:
    """Judge the claims on depth (figure 1), samplers, and importance sampling."""
    depth, sampling = where(rows, part=DEPTH), where(rows, part=SAMPLING)
    claims: list[tuple[str, str, str, str, str, Estimate | str]] = []
    blocks = depth["block"].unique()
    third = max(1, len(blocks) // 3)
    for quantity, name in QUANTITIES.items():
        own = where(depth, quantity=quantity)
        low = _mean_over(own, "neighbours", "block", blocks[:third])
        high = _mean_over(own, "neighbours", "block", blocks[-third:])
        claims.append(
            (f"{name} of neighbouring snippets are more alike at the bottom than at the top",
             _OURS if quantity == "parameter_gradients" else "004, figure 1",
             f"lowest {third} of {len(blocks)} blocks", f"highest {third}",
             "cosine, EfficientNet-Lite0", _over("video", low - high, confidence))
        )  # fmt: skip

    cosine, uniform = "cosine with the full gradient", "uniform_random"
    ratios = sampling["keep_ratio"].unique()

    def above(sampler: str, ratio: float, other_ratio: float) -> Estimate | str:
        """Compare the cosines of a sampler with uniform sampling's at another ratio."""
        ours = values(sampling, "cosine", sampler=sampler, keep_ratio=ratio)
        theirs = values(sampling, "cosine", sampler=uniform, keep_ratio=other_ratio)
        return _over("video", ours - theirs, confidence)

    for ratio in ratios:
        claims += [
            (f"the gradients of the paper's samplers are alike (within {NEAR:g})",
             "004, section 5.1.3 (there by mAP)", f"{NEAR:g}",
             f"|{sampler} - {uniform}|, r = {ratio:g}", cosine,
             alike(NEAR, above(sampler, ratio, ratio)))
            for sampler in ("diverse_feature", "diverse_gradient")
        ]  # fmt: skip
    for ratio in ratios:
        own = f"importance, r = {ratio:g}"
        claims.append(
            ("importance sampling is nearer to the full gradient than uniform sampling", _OURS,
             own, f"{uniform}, r = {ratio:g}", cosine, above("importance", ratio, ratio))
        )  # fmt: skip
        if 2 * ratio in ratios:
            claims.append(
                ("importance sampling is as near as uniform sampling of twice the snippets "
                 f"(within {NEAR:g})", _OURS, f"{own}, +{NEAR:g}", f"{uniform}, r = {2 * ratio:g}",
                 cosine, at_most(NEAR, above("importance", ratio, 2 * ratio)))
            )  # fmt: skip
    return [found(*claim) for claim in claims]
