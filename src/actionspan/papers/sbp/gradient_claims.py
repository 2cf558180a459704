"""The claims of paper 004 about gradients, judged over videos."""

from collections.abc import Sequence

import numpy as np

from actionspan.arrays import Float64
from actionspan.papers.claims import Claim, Finding
from actionspan.papers.estimates import Estimate, alike, over_seeds
from actionspan.papers.rows import distinct, values
from actionspan.papers.sbp.gradients_report import DEPTH, QUANTITIES, SAMPLING
from actionspan.papers.sbp.verdicts import OURS, Row, at_most

NEAR = 0.05
"""By how much a cosine may be lower and still count as equal."""
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
    found = []
    for quantity, name in QUANTITIES.items():
        claim = Claim(
            text=f"{name} of neighbouring snippets are more alike at the bottom than at the top",
            source="004, figure 1" if quantity != "parameter_gradients" else OURS,
            better=f"lowest {third} of {len(blocks)} blocks",
            worse=f"highest {third}",
            measure="cosine, EfficientNet-Lite0",
            key=quantity,
        )
        low, high = (
            np.mean([_depth_values(rows, quantity, block) for block in part], axis=0)
            for part in (blocks[:third], blocks[-third:])
        )
        found.append(claim.judged(over_videos(low - high, confidence)))
    return found


def _depth_values(rows: Sequence[Row], quantity: str, block: str) -> Float64:
    return values(rows, "neighbours", part=DEPTH, quantity=quantity, block=block)


def _samplers(rows: Sequence[Row], confidence: float) -> list[Finding]:
    found = []
    for ratio in _ratios(rows):
        base = _cosines(rows, _THEIRS[0], ratio)
        for sampler in _THEIRS[1:]:
            claim = Claim(
                text=f"the gradients of the paper's samplers are alike (within {NEAR:g})",
                source="004, section 5.1.3 (there by mAP)",
                better=f"{NEAR:g}",
                worse=f"|{sampler} - {_THEIRS[0]}|, r = {ratio}",
                measure="cosine with the full gradient",
                key=ratio,
            )
            difference = over_videos(_cosines(rows, sampler, ratio) - base, confidence)
            found.append(claim.judged(alike(NEAR, difference)))
    return found


def _importance(rows: Sequence[Row], confidence: float) -> list[Finding]:
    found = []
    for ratio in _ratios(rows):
        claim = Claim(
            text="importance sampling is nearer to the full gradient than uniform sampling",
            source=OURS,
            better=f"importance, r = {ratio}",
            worse=f"uniform_random, r = {ratio}",
            measure="cosine with the full gradient",
            key=ratio,
        )
        better, worse = (_cosines(rows, name, ratio) for name in ("importance", _THEIRS[0]))
        found.append(claim.judged(over_videos(better - worse, confidence)))
        twice = f"{2 * float(ratio):g}"
        if twice in _ratios(rows):
            half = Claim(
                text="importance sampling is as near as uniform sampling of twice the snippets "
                f"(within {NEAR:g})",
                source=OURS,
                better=f"importance, r = {ratio}, +{NEAR:g}",
                worse=f"uniform_random, r = {twice}",
                measure="cosine with the full gradient",
                key=ratio,
            )
            difference = better - _cosines(rows, _THEIRS[0], twice)
            found.append(half.judged(at_most(NEAR, over_videos(difference, confidence))))
    return found


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
