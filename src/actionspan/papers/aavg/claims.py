"""Write a verdict on each claim of paper 003: differences of our runs, and their intervals."""

import argparse
from collections.abc import Mapping, Sequence

import numpy as np

from actionspan.papers.aavg.accuracies import (
    KINDS,
    TWO_STREAM,
    Accuracy,
    accuracies,
    estimate,
    interval_words,
    paired,
    scores_words,
)
from actionspan.papers.aavg.comparisons import COMPARISONS, STREAM_NAMES, STREAMS
from actionspan.papers.aavg.published import published_difference
from actionspan.papers.aavg.readers import (
    RunKey,
    RunLogs,
    RunScores,
    add_runs,
    by_way,
    read_run_logs,
    read_run_scores,
    settings_of,
    shared_seeds,
    training_of,
)
from actionspan.papers.aavg.settings import ExperimentSettings
from actionspan.papers.aavg.traffic import traffic_of
from actionspan.papers.claims import (
    NOT_REPRODUCED,
    NOT_TESTABLE,
    REPRODUCED,
    Claim,
    Finding,
    Rule,
    Verdict,
    judge,
    no_runs,
    one_seed,
    write_claims,
)
from actionspan.papers.estimates import Estimate, over_seeds

MARGIN = 1.0
"""Points that an accuracy may be lower and still count as not lowered."""
NEGLIGIBLE = 1.0
"""Percent of the time of training that communication may take and be negligible."""
FINAL = "accuracy"
FIRST_HALF = "mean accuracy of the first half of the epochs"
FIRST_QUARTER = "mean accuracy of the first quarter of the epochs"
SHARE = "communication, % of the time of training"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_runs(parser)


def run(arguments: argparse.Namespace) -> None:
    """Write the verdicts as TSV and Markdown."""
    settings = settings_of(arguments)
    logs, scores = read_run_logs(arguments.logs), read_run_scores(arguments.scores)
    caption = [
        f"Measured with {training_of(arguments.scores)}; {scores_words(scores)}.",
        "A difference above 0 speaks for the claim. It is the better way's percentage less the "
        "worse one's, of the same clips and of runs that share their seed; of communication it is "
        f"{NEGLIGIBLE:g} % less its share. {interval_words(settings)} Means over epochs and shares "
        "have an interval over seeds alone.",
        f"`Not lower` is judged reproduced where the interval lies above -{MARGIN:g}. A claim on "
        "all K holds where it holds for each: shown is the one that speaks most against it. Other "
        "verdicts are on the sign of the difference, not on its size. Published differences are "
        "of UCF101, of ResNet-152 and 16 learners.",
    ]
    write_claims(arguments, judge_claims(logs, scores, settings), "003", caption)


def not_lower(
    low: float, high: float, published: float | None = None, form: str = "+.2f"
) -> tuple[Verdict, str]:
    """Return the verdict on a claim that one is not lower than another, and why.

    No interval shows that two are equal: not lower is what lies less than `MARGIN` below.
    """
    if high < 0:
        return NOT_REPRODUCED, "The interval lies below 0: it is lowered."
    if low == high:
        return judge(low, high, published, form)
    if low > -MARGIN:
        return REPRODUCED, f"The interval lies above -{MARGIN:g}."
    return NOT_TESTABLE, f"The interval holds 0 or more, and -{MARGIN:g} or less too."


def _claims(
    text: str,
    place: str,
    better: str,
    worse: str,
    kinds: Sequence[str],
    measure: str = FINAL,
    rule: Rule = judge,
) -> list[Claim]:
    """Return a claim about each of some streams, or about both together."""
    variants = [way.removesuffix("-epoch") for way in (better, worse)]
    printed = measure == FINAL and variants[0] != variants[1]
    return [
        Claim(
            text=text,
            source=f"003, {place}",
            better=better,
            worse=worse,
            measure=f"{measure}, {STREAM_NAMES[kind]}",
            key=kind,
            published=published_difference(variants[0], variants[1], kind) if printed else None,
            rule=rule,
        )
        for kind in kinds
    ]


_BATCH, _STATE, _TRANSFER = (f"aavg{variant}-epoch" for variant in (2, 3, 4))
_FLOW = ["flow"]
_EARLIER = "with transfer, flow is accurate earlier"
_NOT_LOWERED = "transfer does not lower the accuracy of flow"
_AHEAD = "one learner alone is ahead in the first epochs"

CLAIMS = (
    *_claims("the adaptive batch helps", "table I", _BATCH, "aavg1-epoch", KINDS),
    *_claims("the customised optimiser helps", "table I", _STATE, _BATCH, KINDS),
    *_claims(_EARLIER, "figure 8", _TRANSFER, _STATE, _FLOW, FIRST_HALF),
    *_claims(_NOT_LOWERED, "table I", _TRANSFER, _STATE, _FLOW, rule=not_lower),
    *_claims("transfer helps both streams together", "table I", _TRANSFER, _STATE, [TWO_STREAM]),
    *_claims("AAVG ends above one learner alone", "figure 9", _STATE, "none-k1", STREAMS),
    *_claims(_AHEAD, "figure 9", "none-k1", _STATE, STREAMS, FIRST_QUARTER),
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
        logs: Mapping[RunKey, RunLogs],
        scores: Mapping[RunKey, RunScores],
        settings: ExperimentSettings,
    ) -> None:
        self.logs, self.settings = by_way(logs), settings
        self.accuracies = accuracies(scores)

    def judged(self, claim: Claim) -> Finding:
        """Return the verdict on a claim about accuracy."""
        return claim.judged(self._difference(claim))

    def _difference(self, claim: Claim) -> Estimate | str:
        """Return a claim's difference and its interval, or why there is none."""
        final = claim.measure.startswith(FINAL)
        known: Mapping[RunKey, Accuracy | RunLogs] = self.accuracies if final else self.logs
        ways = [(way, claim.key) for way in (claim.better, claim.worse)]
        if missing := no_runs([way[0] for way in ways if way not in known]):
            return missing
        if len(set(known[ways[0]].seeds) & set(known[ways[1]].seeds)) < 2:
            return "Fewer than two seeds of both say nothing about the next."
        if not final:
            return self._early(claim, [self.logs[way] for way in ways])
        values = paired(*(self.accuracies[way] for way in ways))
        if values.shape[1] < 2:
            return "Fewer than two validation clips have no interval over clips."
        return estimate(values, self.settings)

    def _early(self, claim: Claim, runs: Sequence[RunLogs]) -> Estimate | str:
        """Compare means of the first epochs, which have an interval over seeds alone."""
        part = 2 if claim.measure.startswith(FIRST_HALF) else 4
        epochs = -(-runs[0].accuracy.shape[1] // part)
        means = [
            logs.accuracy[seeds, :epochs].mean(axis=1)
            for logs, seeds in zip(runs, shared_seeds(runs), strict=True)
        ]
        if not np.isfinite(means).all():
            return "There is no validation clip."
        return over_seeds([means[0] - means[1]], self.settings.confidence)

    def negligible(self, stream: str) -> Finding:
        """Judge that an average an epoch costs next to nothing."""
        text, limit = "communication at K = -1 is negligible", f"{NEGLIGIBLE:g} %"
        (claim,) = _claims(text, "section III", _STATE, limit, [stream], SHARE)
        logs = self.logs.get((claim.better, stream))
        if logs is None:
            return claim.judged(no_runs([claim.better]))
        if traffic_of(logs).megabytes is None:
            return claim.judged("Its learners are in one process: nothing was sent.")
        if logs.learning.learners == 1:
            return claim.judged("One learner has nobody to send to.")
        if len(logs.seeds) < 2:
            return claim.judged(one_seed([claim.better]))
        shares = NEGLIGIBLE - traffic_of(logs).shares
        return claim.judged(over_seeds([shares], self.settings.confidence))


def judge_claims(
    logs: Mapping[RunKey, RunLogs], scores: Mapping[RunKey, RunScores], settings: ExperimentSettings
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
    runs = [run_logs.learning for run_logs in logs.values()]
    steps = sorted({learning.interval for learning in runs if learning.method == "aavg1"})
    often = [f"aavg1-k{k}" for k in steps if k != -1]
    findings = []
    for stream in STREAMS:
        number = COMPARISONS["interval"].numbers[stream]
        text = "K = -1 ends above every other K"
        best = [
            claim
            for worse in often or ["aavg1-k1"]
            for claim in _claims(text, number, "aavg1-epoch", worse, [stream])
        ]
        text = "no K ends below K = 1"
        harmless = [
            claim
            for better in (*often, "aavg1-epoch")
            if better != "aavg1-k1"
            for claim in _claims(text, number, better, "aavg1-k1", [stream], rule=not_lower)
        ]
        findings += [_of_all(claims, evidence) for claims in (best, harmless)]
    findings += [evidence.judged(claim) for claim in CLAIMS]
    return findings + [evidence.negligible(stream) for stream in STREAMS]


def _of_all(claims: Sequence[Claim], evidence: Evidence) -> Finding:
    """Judge that all of these claims hold, by the one that speaks most against it.

    All hold with the confidence of each (an intersection-union test); one that fails is enough.
    """
    order = (NOT_REPRODUCED, NOT_TESTABLE, REPRODUCED)
    # without runs there is no difference to sort by; such come first
    return min(
        (evidence.judged(claim) for claim in claims),
        key=lambda found: (order.index(found.verdict), not np.isnan(found.low), found.low),
    )
