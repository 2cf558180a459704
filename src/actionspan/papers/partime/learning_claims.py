"""The claims of paper 002 about gradients, accuracy and flow, judged over seeds."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from actionspan.arrays import Float64
from actionspan.papers.claims import Claim, Finding
from actionspan.papers.estimates import Estimate, over_seeds
from actionspan.papers.partime.classification_report import gaps
from actionspan.papers.partime.flow_report import patterns, ratios
from actionspan.papers.partime.gradients_report import by_speed
from actionspan.papers.partime.settings import PartimeSettings
from actionspan.papers.partime.variants import LAST_ONLY, Variant
from actionspan.papers.rows import Row, distinct, values

PATTERN = 0.9
"""Correlation from which two curves follow the same pattern."""
NEAR = 0.05
"""Share by which a loss may be higher and still be like another."""
OURS = "not in the paper"
_STREAMS = {"random": "random streams", "frames": "frames"}


def judged(claim: Claim, differences: Float64, confidence: float) -> Finding:
    """Return the verdict on a difference of each seed."""
    if len(differences) < 2:
        return claim.judged("Fewer than two seeds say nothing about the next.")
    if np.isnan(differences).any():
        return claim.judged("Some run has no value.")
    return claim.judged(over_seeds([differences], confidence, form=claim.form))


def exact(value: float, form: str) -> Estimate:
    """Return a number that is counted, not drawn: its interval is itself."""
    return Estimate(value=value, low=value, high=value, form=form)


def gradient_findings(rows: Sequence[Row], own: PartimeSettings, good: float) -> list[Finding]:
    """Judge the claims that gradients are good on slow streams, and bad on others."""
    found = []
    for kind in distinct(rows, "stream"):
        settings = [setting for setting, _ in by_speed(rows, kind)]
        slow, fast = settings[0], settings[-1]
        for stages in own.stages:
            each = {
                (setting, mode): values(
                    rows,
                    "cosine",
                    stream=kind,
                    setting=setting,
                    stages=stages,
                    gradients=mode,
                    stage=1,
                )
                for setting in (slow, fast)
                for mode in ("paper", "inputs")
            }
            shared: dict[str, Any] = {
                "measure": f"cosine with the true gradient, stage 1, {_STREAMS[kind]}",
                "key": kind,
            }
            name = f"D = {stages}"
            harmless = Claim(
                text="the approximation is not critical where inputs change slowly",
                source="002, section II",
                better=f"{name}, {slow}",
                worse=f"{good:g}",
                **shared,
            )
            harmful = Claim(
                text="it is better the slower inputs change",
                source="002, section III",
                better=f"{name}, {slow}",
                worse=f"{name}, {fast}",
                **shared,
            )
            mended = Claim(
                text="to keep the inputs mends the gradients",
                source=OURS,
                better=f"{name}, inputs, {fast}",
                worse=f"{name}, paper, {fast}",
                **shared,
            )
            found += [
                judged(harmless, each[slow, "paper"] - good, own.confidence),
                judged(harmful, each[slow, "paper"] - each[fast, "paper"], own.confidence),
                judged(mended, each[fast, "inputs"] - each[fast, "paper"], own.confidence),
            ]
    return found


def classification_findings(rows: Sequence[Row], own: PartimeSettings) -> list[Finding]:
    """Judge the claims on windows and numbers of stages (figure 3)."""
    sizes = sorted(distinct(rows, "window"), key=int)
    narrow, wide = sizes[0], sizes[-1]
    found = []
    for order in distinct(rows, "stream"):
        measure: dict[str, Any] = {
            "measure": f"accuracy, stream {order}",
            "key": order,
            "form": "+.3f",
        }
        gap = {
            (stages, size): gaps(rows, order, size, Variant(stages, "paper"))
            for stages in own.stages
            for size in (narrow, wide)
        }
        for stages in own.stages:
            name = f"D = {stages}"
            below = Claim(
                text="sequential learning is above a pipeline",
                source="002, figure 3",
                better=f"sequential, B = {wide}",
                worse=f"{name}, B = {wide}",
                **measure,
            )
            nearer = Claim(
                text="a larger window brings a pipeline nearer to sequential learning",
                source="002, section V-D",
                better=f"{name}, B = {wide}",
                worse=f"{name}, B = {narrow}",
                **measure,
            )
            learns = Claim(
                text="all stages learn: above the last stage alone",
                source=OURS,
                better=f"{name}, B = {wide}",
                worse=f"{name}, {LAST_ONLY}",
                **measure,
            )
            alone = gaps(rows, order, wide, Variant(stages, LAST_ONLY))
            found += [
                judged(below, gap[stages, wide], own.confidence),
                judged(nearer, gap[stages, narrow] - gap[stages, wide], own.confidence),
                judged(learns, alone - gap[stages, wide], own.confidence),
            ]
        if len(own.stages) > 1:
            few, many = own.stages[0], own.stages[-1]
            fewer = Claim(
                text="fewer stages learn better",
                source="002, figure 3",
                better=f"D = {few}, B = {narrow}",
                worse=f"D = {many}, B = {narrow}",
                **measure,
            )
            found.append(judged(fewer, gap[many, narrow] - gap[few, narrow], own.confidence))
    return found


def flow_findings(rows: Sequence[Row], own: PartimeSettings) -> list[Finding]:
    """Judge the claims on the loss of flow over time (figure 5)."""
    found = []
    for stages in own.stages:
        way, name = Variant(stages, "paper"), f"D = {stages}"
        same = Claim(
            text="the loss over time has the pattern of sequential learning",
            source="002, section V-E",
            better=name,
            worse=f"{PATTERN:g}",
            measure="correlation of the losses of windows",
            key="flow",
        )
        found.append(judged(same, patterns(rows, way) - PATTERN, own.confidence))
        beyond = Claim(
            text="so has what is learned, without what the frames do to every curve",
            source=OURS,
            better=name,
            worse=f"{PATTERN:g}",
            measure="correlation of the losses as shares of those without flow",
            key="flow",
        )
        learned = patterns(rows, way, learned=True) - PATTERN
        found.append(judged(beyond, learned, own.confidence))
    ends = {stages: ratios(rows, Variant(stages, "paper")) for stages in own.stages}
    few, many = own.stages[0], own.stages[-1]
    near = Claim(
        text=f"{few} stages lose little to sequential learning (up to {100 * NEAR:g} %)",
        source="002, section V-E",
        better=f"{1 + NEAR:g} of sequential",
        worse=f"D = {few}",
        measure="late loss of flow",
        key="flow",
        form="+.3f",
    )
    worse = Claim(
        text=f"{many} stages are a little worse than sequential learning",
        source="002, section V-E",
        better="sequential",
        worse=f"D = {many}",
        measure="late loss of flow",
        key="flow",
        form="+.3f",
    )
    return [
        *found,
        judged(near, 1 + NEAR - ends[few], own.confidence),
        judged(worse, ends[many] - 1, own.confidence),
    ]
