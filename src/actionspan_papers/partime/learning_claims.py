"""The claims of paper 002 about gradients, accuracy and flow, judged over seeds."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from actionspan.arrays import Float64
from actionspan_papers.claims import Finding, Question, findings_on
from actionspan_papers.estimates import Estimate, over_seeds
from actionspan_papers.experiments import values, where
from actionspan_papers.kinds import DataFrame
from actionspan_papers.partime.classification import gaps
from actionspan_papers.partime.flow import patterns, ratios
from actionspan_papers.partime.gradients import by_speed
from actionspan_papers.partime.settings import LAST_ONLY, PartimeSettings, Variant

OURS = "not in the paper"
_PATTERN = 0.9  # correlation from which two curves follow the same pattern
_NEAR = 0.05  # share by which a loss may be higher and still be like another
_STREAMS = {"random": "random streams", "frames": "frames"}


def mean_of(
    differences: Sequence[float] | Float64, confidence: float, form: str = "+.2f"
) -> Estimate | str:
    """Return the mean difference over seeds with its interval, or why there is none."""
    each = np.asarray(differences)
    if len(each) < 2:
        return "Fewer than two seeds show nothing about the next."
    if np.isnan(each).any():
        return "Some run has no value."
    return over_seeds([each], confidence, form=form)


_COSINE = "cosine with the true gradient, stage 1, {stream}"
_GRADIENTS: Sequence[Question] = (
    ("the approximation is not critical where inputs change slowly", "002, section II",
     "D = {stages}, {slow}", "{good:g}", _COSINE, lambda own: own["of_slow"] - own["good"]),
    ("it is better the slower inputs change", "002, section III",
     "D = {stages}, {slow}", "D = {stages}, {fast}", _COSINE,
     lambda own: own["of_slow"] - own["of_fast"]),
    ("to keep the inputs mends the gradients", OURS,
     "D = {stages}, inputs, {fast}", "D = {stages}, paper, {fast}", _COSINE,
     lambda own: own["inputs"] - own["of_fast"]),
)  # fmt: skip


def gradient_findings(rows: DataFrame, own: PartimeSettings, good: float) -> list[Finding]:
    """Judge the claims that gradients are good on slow streams, and bad on others."""
    findings = []
    for kind, runs in rows.groupby("stream", sort=False):
        settings = [setting for setting, _ in by_speed(runs)]
        slow, fast = settings[0], settings[-1]
        for stages in own.stages:
            cosines = partial(values, runs, "cosine", stages=stages, stage=1)
            case: dict[str, Any] = {
                **{"stream": _STREAMS[kind], "stages": stages, "good": good},
                **{"slow": slow, "of_slow": cosines(setting=slow, gradients="paper")},
                **{"fast": fast, "of_fast": cosines(setting=fast, gradients="paper")},
                "inputs": cosines(setting=fast, gradients="inputs"),
            }
            findings += findings_on(case, _GRADIENTS, partial(mean_of, confidence=own.confidence))
    return findings


_ACCURACY = "accuracy, stream {stream}"
_CLASSIFICATION: Sequence[Question] = (
    ("sequential learning is above a pipeline", "002, figure 3",
     "sequential, B = {wide}", "D = {stages}, B = {wide}", _ACCURACY, lambda own: own["of_wide"]),
    ("a larger window brings a pipeline nearer to sequential learning", "002, section V-D",
     "D = {stages}, B = {wide}", "D = {stages}, B = {narrow}", _ACCURACY,
     lambda own: own["of_narrow"] - own["of_wide"]),
    ("all stages learn: above the last stage alone", OURS,
     "D = {stages}, B = {wide}", f"D = {{stages}}, {LAST_ONLY}", _ACCURACY,
     lambda own: own["alone"] - own["of_wide"]),
)  # fmt: skip
_FEWER: Sequence[Question] = (
    ("fewer stages learn better", "002, figure 3",
     "D = {few}, B = {narrow}", "D = {many}, B = {narrow}", _ACCURACY,
     lambda own: own["of_many"] - own["of_few"]),
)  # fmt: skip


def classification_findings(rows: DataFrame, own: PartimeSettings) -> list[Finding]:
    """Judge the claims on windows and numbers of stages (figure 3)."""
    narrow, wide = rows["window"].min(), rows["window"].max()
    few, many = own.stages[0], own.stages[-1]
    judge = partial(mean_of, confidence=own.confidence, form="+.3f")
    findings = []
    for order, runs in rows.groupby("stream", sort=False):
        of_narrow, of_wide = where(runs, window=narrow), where(runs, window=wide)
        named = {"stream": order, "narrow": narrow, "wide": wide, "few": few, "many": many}
        narrows = {stages: gaps(of_narrow, Variant(stages, "paper")) for stages in own.stages}
        for stages in own.stages:
            case = {
                **{**named, "stages": stages, "of_narrow": narrows[stages]},
                "of_wide": gaps(of_wide, Variant(stages, "paper")),
                "alone": gaps(of_wide, Variant(stages, LAST_ONLY)),
            }
            findings += findings_on(case, _CLASSIFICATION, judge, form="+.3f")
        if few != many:
            case = {**named, "of_few": narrows[few], "of_many": narrows[many]}
            findings += findings_on(case, _FEWER, judge, form="+.3f")
    return findings


_PLACE, _LATE = "002, section V-E", "late loss of flow"
_PATTERNS: Sequence[Question] = (
    ("the loss over time has the pattern of sequential learning", _PLACE,
     "D = {stages}", f"{_PATTERN:g}", "correlation of the losses of windows",
     lambda own: own["losses"] - _PATTERN),
    ("so has learning, without the effect of the frames on every curve", OURS,
     "D = {stages}", f"{_PATTERN:g}", "correlation of the losses as shares of those without flow",
     lambda own: own["shares"] - _PATTERN),
)  # fmt: skip
_LOSSES: Sequence[Question] = (
    (f"{{few}} stages lose little to sequential learning (up to {100 * _NEAR:g} %)", _PLACE,
     f"{1 + _NEAR:g} of sequential", "D = {few}", _LATE, lambda own: 1 + _NEAR - own["of_few"]),
    ("{many} stages are a little worse than sequential learning", _PLACE,
     "sequential", "D = {many}", _LATE, lambda own: own["of_many"] - 1),
)  # fmt: skip


def flow_findings(rows: DataFrame, own: PartimeSettings) -> list[Finding]:
    """Judge the claims on the loss of flow over time (figure 5)."""
    judge = partial(mean_of, confidence=own.confidence)
    findings = []
    for stages in own.stages:
        way = Variant(stages, "paper")
        shares = patterns(rows, way, learned=True)
        case = {"stages": stages, "losses": patterns(rows, way), "shares": shares}
        findings += findings_on(case, _PATTERNS, judge)
    few, many = own.stages[0], own.stages[-1]
    case = {"few": few, "of_few": ratios(rows, Variant(few, "paper"))}
    case |= {"many": many, "of_many": ratios(rows, Variant(many, "paper"))}
    return findings + findings_on(case, _LOSSES, partial(judge, form="+.3f"), form="+.3f")
