"""The claims of paper 004 about gradients, judged over videos."""

from collections.abc import Sequence

import numpy as np

from actionspan.arrays import Float64
from actionspan_papers.claims import Finding, found
from actionspan_papers.estimates import Estimate, alike, over_seeds
from actionspan_papers.rows import distinct, values
from actionspan_papers.sbp.gradients import DEPTH, QUANTITIES, SAMPLING
from actionspan_papers.sbp.verdicts import OURS, Row, at_most

NEAR = 0.05
"""By how much a cosine may be lower and still count as equal."""
_MEASURE = "cosine with the full gradient"
_THEIRS = ("uniform_random", "diverse_feature", "diverse_gradient")


def gradient_findings(rows: Sequence[Row], confidence: float) -> list[Finding]:
    """Judge the claims on depth (figure 1), samplers, and importance sampling."""
    return [
        *_depth(rows, confidence),
        *_samplers(rows, confidence),
        *_importance(rows, confidence),
    ]


def _depth(rows: Sequence[Row], confidence: float) -> list[Finding]:
    blocks = distinct([row for row in rows if row["part"] == DEPTH], "block")
    third = max(1, len(blocks) // 3)
    findings = []
    for quantity, name in QUANTITIES.items():
        low, high = (
            np.mean([_depth_values(rows, quantity, block) for block in part], axis=0)
            for part in (blocks[:third], blocks[-third:])
        )
        claim = found(
            f"{name} of neighbouring snippets are more alike at the bottom than at the top",
            "004, figure 1" if quantity != "parameter_gradients" else OURS,
            f"lowest {third} of {len(blocks)} blocks",
            f"highest {third}",
            "cosine, EfficientNet-Lite0",
            over_videos(low - high, confidence),
        )
        findings.append(claim)
    return findings


def _depth_values(rows: Sequence[Row], quantity: str, block: str) -> Float64:
    return values(rows, "neighbours", part=DEPTH, quantity=quantity, block=block)


def _samplers(rows: Sequence[Row], confidence: float) -> list[Finding]:
    uniform, *others = _THEIRS
    text = f"the gradients of the paper's samplers are alike (within {NEAR:g})"
    source, findings = "004, section 5.1.3 (there by mAP)", []
    for ratio in _ratios(rows):
        base = _cosines(rows, uniform, ratio)
        for sampler in others:
            difference = over_videos(_cosines(rows, sampler, ratio) - base, confidence)
            sides = f"{NEAR:g}", f"|{sampler} - {uniform}|, r = {ratio}"
            findings.append(found(text, source, *sides, _MEASURE, alike(NEAR, difference)))
    return findings


def _importance(rows: Sequence[Row], confidence: float) -> list[Finding]:
    nearer = "importance sampling is nearer to the full gradient than uniform sampling"
    half = "importance sampling is as near as uniform sampling of twice the snippets"
    half += f" (within {NEAR:g})"
    findings = []
    for ratio in _ratios(rows):
        own, uniform = f"importance, r = {ratio}", _THEIRS[0]
        cosines = _cosines(rows, "importance", ratio)
        better = over_videos(cosines - _cosines(rows, uniform, ratio), confidence)
        findings.append(found(nearer, OURS, own, f"{uniform}, r = {ratio}", _MEASURE, better))
        twice = f"{2 * float(ratio):g}"
        if twice in _ratios(rows):
            less = over_videos(cosines - _cosines(rows, uniform, twice), confidence)
            sides = f"{own}, +{NEAR:g}", f"{uniform}, r = {twice}"
            findings.append(found(half, OURS, *sides, _MEASURE, at_most(NEAR, less)))
    return findings


def _ratios(rows: Sequence[Row]) -> list[str]:
    return distinct([row for row in rows if row["part"] == SAMPLING], "keep_ratio")


def _cosines(rows: Sequence[Row], sampler: str, ratio: str) -> Float64:
    return values(rows, "cosine", part=SAMPLING, sampler=sampler, keep_ratio=ratio)


def over_videos(differences: Float64, confidence: float) -> Estimate | str:
    """Return the mean difference and its interval over videos (Student's t), or why there is none.

    Args:
        differences: (V,) of each video.
        confidence: Level of the interval.
    """
    if len(differences) < 2:
        return "Fewer than two videos have no interval over videos."
    if np.isnan(differences).any():
        return "Some video has no value."
    return over_seeds([differences], confidence, form="+.2f")
