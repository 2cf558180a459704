"""Paper 003's claims on our runs: the differences they are about, intervals, and verdicts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from actionspan.evaluation.resampling import Floats, seeds_half_width
from actionspan.papers.aavg.comparisons import COMPARISONS, STREAM_NAMES, STREAMS
from actionspan.papers.aavg.exchanged import traffic_of
from actionspan.papers.aavg.final_accuracy import (
    KINDS,
    Accuracy,
    Estimate,
    accuracies,
    estimate,
    paired,
)
from actionspan.papers.aavg.published import published_difference
from actionspan.papers.aavg.run_files import Of, RunLogs, RunScores, by_way, shared_seeds
from actionspan.papers.aavg.settings import ExperimentSettings
from actionspan.papers.claims import (
    NOT_REPRODUCED,
    NOT_TESTABLE,
    REPRODUCED,
    Finding,
    Verdict,
    claims_markdown,
    judge,
)

MARGIN = 1.0
"""Points that an accuracy may be lower and still count as not lowered."""
NEGLIGIBLE = 1.0
"""Percent of the time of training that communication may take and be negligible."""
FINAL = "accuracy"
FIRST_HALF = "mean accuracy of the first half of the epochs"
FIRST_QUARTER = "mean accuracy of the first quarter of the epochs"
SHARE = "communication, % of the time of training"

Rule = Callable[[float, float, float | None], tuple[Verdict, str]]


def not_lower(low: float, high: float, published: float | None = None) -> tuple[Verdict, str]:
    """Return the verdict on a claim that one is not lower than another, and why.

    No interval shows that two are equal: not lower is what lies less than `MARGIN` below.
    """
    if high < 0:
        return NOT_REPRODUCED, "The interval lies below 0: it is lowered."
    if low == high:
        return judge(low, high, published)
    if low > -MARGIN:
        return REPRODUCED, f"The interval lies above -{MARGIN:g}."
    return NOT_TESTABLE, f"The interval holds 0 or more, and -{MARGIN:g} or less too."


@dataclass(frozen=True, kw_only=True)
class Claim:
    """That one way of training is better than another, by a measure of each of some streams."""

    text: str
    source: str
    better: str
    worse: str
    kinds: tuple[str, ...]
    measure: str = FINAL
    rule: Rule = judge


CLAIMS = (
    Claim(
        text="the adaptive batch helps",
        source="003, table I",
        better="aavg2-epoch",
        worse="aavg1-epoch",
        kinds=KINDS,
    ),
    Claim(
        text="the customised optimiser helps",
        source="003, table I",
        better="aavg3-epoch",
        worse="aavg2-epoch",
        kinds=KINDS,
    ),
    Claim(
        text="with transfer, flow is accurate earlier",
        source="003, figure 8",
        better="aavg4-epoch",
        worse="aavg3-epoch",
        kinds=("flow",),
        measure=FIRST_HALF,
    ),
    Claim(
        text="transfer does not lower the accuracy of flow",
        source="003, table I",
        better="aavg4-epoch",
        worse="aavg3-epoch",
        kinds=("flow",),
        rule=not_lower,
    ),
    Claim(
        text="transfer helps both streams together",
        source="003, table I",
        better="aavg4-epoch",
        worse="aavg3-epoch",
        kinds=("two-stream",),
    ),
    Claim(
        text="AAVG ends above one learner alone",
        source="003, figure 9",
        better="aavg3-epoch",
        worse="none-k1",
        kinds=STREAMS,
    ),
    Claim(
        text="one learner alone is ahead in the first epochs",
        source="003, figure 9",
        better="none-k1",
        worse="aavg3-epoch",
        kinds=STREAMS,
        measure=FIRST_QUARTER,
    ),
)


class Evidence:
    """What all runs together say, by way of joining learners.

    Args:
        logs: Of any runs.
        scores: Likewise.
        settings: How the intervals are made.

    Raises:
        InputError: Two runs are of one way.
    """

    def __init__(
        self,
        logs: Mapping[Of, RunLogs],
        scores: Mapping[Of, RunScores],
        settings: ExperimentSettings,
    ) -> None:
        self.logs, self.settings = by_way(logs), settings
        self.accuracies = accuracies(scores)

    def difference(self, claim: Claim, kind: str) -> Estimate | str:
        """Return a claim's difference and its interval, or why there is none."""
        known: Mapping[Of, Accuracy | RunLogs]
        known = self.accuracies if claim.measure == FINAL else self.logs
        missing = [way for way in (claim.better, claim.worse) if (way, kind) not in known]
        if missing:
            return f"There are no runs of {' and '.join(missing)}."
        seeds = [set(known[way, kind].seeds) for way in (claim.better, claim.worse)]
        if len(seeds[0] & seeds[1]) < 2:
            return "Fewer than two seeds of both say nothing about the next."
        if claim.measure != FINAL:
            return self._early(claim, kind)
        values = paired(*(self.accuracies[way, kind] for way in (claim.better, claim.worse)))
        if values.shape[1] < 2:
            return "Fewer than two validation clips have no interval over clips."
        return estimate(values, self.settings)

    def _early(self, claim: Claim, kind: str) -> Estimate | str:
        """Compare means of the first epochs, which have an interval over seeds alone."""
        runs = [self.logs[way, kind] for way in (claim.better, claim.worse)]
        part = 2 if claim.measure == FIRST_HALF else 4
        epochs = -(-runs[0].accuracy.shape[1] // part)
        means = [
            run.accuracy[seeds, :epochs].mean(axis=1)
            for run, seeds in zip(runs, shared_seeds(runs), strict=True)
        ]
        if not np.isfinite(means).all():
            return "There is no validation clip."
        return over_seeds(means[0] - means[1], self.settings.confidence)


def over_seeds(differences: Floats, confidence: float) -> Estimate:
    """Return the mean of (S,) differences, S at least 2, with Student's t interval."""
    value, half = float(differences.mean()), seeds_half_width([differences], confidence)
    return Estimate(value=value, low=round(value - half, 9), high=round(value + half, 9))


def judge_claims(
    logs: Mapping[Of, RunLogs], scores: Mapping[Of, RunScores], settings: ExperimentSettings
) -> list[Finding]:
    """Return a finding for each claim and stream.

    Args:
        logs: Of the runs that there are.
        scores: Likewise.
        settings: How the intervals are made.

    Raises:
        InputError: Two runs are of one way.
    """
    evidence = Evidence(logs, scores, settings)
    steps = sorted({of.learning.interval for of in logs.values() if of.learning.method == "aavg1"})
    often = [f"aavg1-k{k}" for k in steps if k != -1]
    findings = []
    for kind in STREAMS:
        number = COMPARISONS["interval"].numbers[kind]
        best = [
            Claim(
                text="K = -1 ends above every other K",
                source=f"003, {number}",
                better="aavg1-epoch",
                worse=worse,
                kinds=(kind,),
            )
            for worse in often or ["aavg1-k1"]
        ]
        findings.append(_of_all(best, kind, evidence))
        harmless = [
            Claim(
                text="no K ends below K = 1",
                source=f"003, {number}",
                better=better,
                worse="aavg1-k1",
                kinds=(kind,),
                rule=not_lower,
            )
            for better in (*often, "aavg1-epoch")
            if better != "aavg1-k1"
        ]
        findings.append(_of_all(harmless, kind, evidence))
    findings += [_finding(claim, kind, evidence) for claim in CLAIMS for kind in claim.kinds]
    return findings + [_negligible(evidence, stream) for stream in STREAMS]


def _finding(claim: Claim, kind: str, evidence: Evidence) -> Finding:
    """Judge one claim of one stream, or of both together."""
    found = evidence.difference(claim, kind)
    published = _published(claim, kind)
    if isinstance(found, str):
        return _told(claim, kind, None, published, NOT_TESTABLE, found)
    return _told(claim, kind, found, published, *claim.rule(found.low, found.high, published))


def _published(claim: Claim, kind: str) -> float | None:
    """Return the difference that the paper prints, of variants that average once an epoch."""
    variants = [way.removesuffix("-epoch") for way in (claim.better, claim.worse)]
    if claim.measure != FINAL or variants[0] == variants[1]:
        return None
    return published_difference(variants[0], variants[1], kind)


def _of_all(claims: Sequence[Claim], kind: str, evidence: Evidence) -> Finding:
    """Judge that all of these claims hold, by the one that speaks most against it.

    All hold with the confidence of each (an intersection-union test); one that fails is enough.
    """
    each = [_finding(claim, kind, evidence) for claim in claims]
    for verdict in (NOT_REPRODUCED, NOT_TESTABLE, REPRODUCED):
        of = [one for one in each if one.verdict == verdict]
        if of:
            # without runs there is no difference to sort by; such come first
            return min(of, key=lambda one: (not np.isnan(one.low), one.low))
    raise AssertionError("a finding has a verdict")


def _negligible(evidence: Evidence, stream: str) -> Finding:
    """Judge that an average an epoch costs next to nothing."""
    claim = Claim(
        text="communication at K = -1 is negligible",
        source="003, section III",
        better="aavg3-epoch",
        worse=f"{NEGLIGIBLE:g} %",
        kinds=STREAMS,
        measure=SHARE,
    )
    run = evidence.logs.get((claim.better, stream))
    why = ""
    if run is None:
        why = f"There are no runs of {claim.better}."
    elif traffic_of(run).megabytes is None:
        why = "Its learners are in one process: nothing was sent."
    elif run.learning.learners == 1:
        why = "One learner has nobody to send to."
    elif len(run.seeds) < 2:
        why = f"One seed of {claim.better} says nothing about the next."
    if run is None or why:
        return _told(claim, stream, None, None, NOT_TESTABLE, why)
    found = over_seeds(NEGLIGIBLE - traffic_of(run).shares, evidence.settings.confidence)
    return _told(claim, stream, found, None, *judge(found.low, found.high, None))


def _told(
    claim: Claim,
    kind: str,
    found: Estimate | None,
    published: float | None,
    verdict: Verdict,
    why: str,
) -> Finding:
    none = float("nan")
    found = found or Estimate(value=none, low=none, high=none)
    return Finding(
        claim=claim.text,
        source=claim.source,
        measure=f"{claim.measure}, {STREAM_NAMES[kind]}",
        better=claim.better,
        worse=claim.worse,
        difference=found.value,
        low=found.low,
        high=found.high,
        published=published,
        verdict=verdict,
        why=why,
    )


def findings_markdown(findings: Sequence[Finding], measured: str, how: str) -> str:
    """Return the findings in Markdown.

    Args:
        findings: What `judge_claims` returned.
        measured: How and on what the runs were trained, in words.
        how: What the intervals of accuracies are, in words.
    """
    words = (
        f"Measured with {measured}.",
        "A difference above 0 speaks for the claim. It is the better way's percentage less the "
        "worse one's, of the same clips and of runs that share their seed; of communication it is "
        f"{NEGLIGIBLE:g} % less its share. {how} Means over epochs and shares have an interval "
        "over seeds alone.",
        f"`Not lower` is judged reproduced where the interval lies above -{MARGIN:g}. A claim on "
        "all K holds where it holds for each: shown is the one that speaks most against it. Other "
        "verdicts are on the sign of the difference, not on its size. Published differences are "
        "of UCF101, of ResNet-152 and 16 learners.",
    )
    return claims_markdown(findings, "003", words)
