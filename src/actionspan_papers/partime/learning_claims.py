"""The claims of paper 002 about gradients, accuracy and flow, judged over seeds."""

from collections.abc import Sequence

import numpy as np

from actionspan.arrays import Float64
from actionspan_papers.claims import Finding, found
from actionspan_papers.estimates import Estimate, over_seeds
from actionspan_papers.partime.classification import gaps
from actionspan_papers.partime.flow import patterns, ratios
from actionspan_papers.partime.gradients import by_speed
from actionspan_papers.partime.settings import LAST_ONLY, PartimeSettings, Variant
from actionspan_papers.rows import Row, distinct, values

PATTERN = 0.9
"""Correlation from which two curves follow the same pattern."""
NEAR = 0.05
"""Share by which a loss may be higher and still be like another."""
OURS = "not in the paper"
_STREAMS = {"random": "random streams", "frames": "frames"}


def mean_of(
    differences: Sequence[float] | Float64, confidence: float, form: str = "+.2f"
) -> Estimate | str:
    """Return the mean difference over seeds with its interval, or why there is none."""
    values_ = np.asarray(differences)
    if len(values_) < 2:
        return "Fewer than two seeds say nothing about the next."
    if np.isnan(values_).any():
        return "Some run has no value."
    return over_seeds([values_], confidence, form=form)


def gradient_findings(rows: Sequence[Row], own: PartimeSettings, good: float) -> list[Finding]:
    """Judge the claims that gradients are good on slow streams, and bad on others."""
    findings = []
    for kind in distinct(rows, "stream"):
        settings = [setting for setting, _ in by_speed(rows, kind)]
        slow, fast = settings[0], settings[-1]
        measure = f"cosine with the true gradient, stage 1, {_STREAMS[kind]}"
        for stages in own.stages:
            chosen = {"stream": kind, "stages": stages, "stage": 1}
            each = {
                (setting, mode): values(rows, "cosine", setting=setting, gradients=mode, **chosen)
                for setting in (slow, fast)
                for mode in ("paper", "inputs")
            }
            name = f"D = {stages}"
            of_slow, of_fast = each[slow, "paper"], each[fast, "paper"]
            claims = (
                (
                    "the approximation is not critical where inputs change slowly",
                    *("002, section II", f"{name}, {slow}", f"{good:g}", of_slow - good),
                ),
                (
                    "it is better the slower inputs change",
                    *("002, section III", f"{name}, {slow}", f"{name}, {fast}", of_slow - of_fast),
                ),
                (
                    "to keep the inputs mends the gradients",
                    *(OURS, f"{name}, inputs, {fast}", f"{name}, paper, {fast}"),
                    each[fast, "inputs"] - of_fast,
                ),
            )
            findings += [
                found(text, source, better, worse, measure, mean_of(differences, own.confidence))
                for text, source, better, worse, differences in claims
            ]
    return findings


def classification_findings(rows: Sequence[Row], own: PartimeSettings) -> list[Finding]:
    """Judge the claims on windows and numbers of stages (figure 3)."""
    sizes = sorted(distinct(rows, "window"), key=int)
    narrow, wide = sizes[0], sizes[-1]
    few, many = own.stages[0], own.stages[-1]
    findings = []
    for order in distinct(rows, "stream"):
        gap = {
            (stages, size): gaps(rows, order, size, Variant(stages, "paper"))
            for stages in own.stages
            for size in (narrow, wide)
        }
        claims = []
        for stages in own.stages:
            name, near = f"D = {stages}", gap[stages, wide]
            alone = gaps(rows, order, wide, Variant(stages, LAST_ONLY))
            here = f"{name}, B = {wide}"
            claims += [
                (
                    "sequential learning is above a pipeline",
                    *("002, figure 3", f"sequential, B = {wide}", here, near),
                ),
                (
                    "a larger window brings a pipeline nearer to sequential learning",
                    *("002, section V-D", here, f"{name}, B = {narrow}"),
                    gap[stages, narrow] - near,
                ),
                (
                    "all stages learn: above the last stage alone",
                    *(OURS, here, f"{name}, {LAST_ONLY}", alone - near),
                ),
            ]
        if len(own.stages) > 1:
            sides = f"D = {few}, B = {narrow}", f"D = {many}, B = {narrow}"
            fewer = gap[many, narrow] - gap[few, narrow]
            claims.append(("fewer stages learn better", "002, figure 3", *sides, fewer))
        for text, source, better, worse, differences in claims:
            mean = mean_of(differences, own.confidence, "+.3f")
            measure = f"accuracy, stream {order}"
            findings.append(found(text, source, better, worse, measure, mean, form="+.3f"))
    return findings


def flow_findings(rows: Sequence[Row], own: PartimeSettings) -> list[Finding]:
    """Judge the claims on the loss of flow over time (figure 5)."""
    place, findings = "002, section V-E", []
    for stages in own.stages:
        way, sides = Variant(stages, "paper"), (f"D = {stages}", f"{PATTERN:g}")
        for learned, text, source, measure in (
            (
                *(False, "the loss over time has the pattern of sequential learning", place),
                "correlation of the losses of windows",
            ),
            (
                *(True, "so has what is learned, without what the frames do to every curve", OURS),
                "correlation of the losses as shares of those without flow",
            ),
        ):
            mean = mean_of(patterns(rows, way, learned=learned) - PATTERN, own.confidence)
            findings.append(found(text, source, *sides, measure, mean))
    few, many = own.stages[0], own.stages[-1]
    ends = {stages: ratios(rows, Variant(stages, "paper")) for stages in (few, many)}
    near = f"{few} stages lose little to sequential learning (up to {100 * NEAR:g} %)"
    worse = f"{many} stages are a little worse than sequential learning"
    for text, better, stages, differences in (
        (near, f"{1 + NEAR:g} of sequential", few, 1 + NEAR - ends[few]),
        (worse, "sequential", many, ends[many] - 1),
    ):
        mean = mean_of(differences, own.confidence, "+.3f")
        sides = better, f"D = {stages}"
        findings.append(found(text, place, *sides, "late loss of flow", mean, form="+.3f"))
    return findings
