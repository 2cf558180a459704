"""Write a verdict on each claim of paper 003: differences of our runs, and their intervals."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from actionspan_papers import claims
from actionspan_papers.aavg import comparisons, readers, table
from actionspan_papers.aavg.comparisons import (
    LEARNERS,
    STREAM_NAMES,
    STREAMS,
    TIMES,
    ExperimentSettings,
)
from actionspan_papers.aavg.printed import printed_findings
from actionspan_papers.aavg.times import ALONE, gain
from actionspan_papers.claims import claims_experiment
from actionspan_papers.estimates import Estimate, over_seeds

_MARGIN = 1.0
"""Points that an accuracy may be lower and still count as not lowered."""
_NEGLIGIBLE = 1.0
"""Percent of the time of training that communication may take and be negligible."""
FINAL = "accuracy"
FIRST_HALF = "mean accuracy of the first half of the epochs"
FIRST_QUARTER = "mean accuracy of the first quarter of the epochs"
SHARE = "communication, % of the time of training"
SAMPLES = "samples of one alone ÷ samples of all learners, less 1"
SPEEDUP = "speed-up ÷ learners, less 1"


def _judged(arguments: argparse.Namespace, settings: ExperimentSettings) -> claims.Judged:
    logs, scores = readers.read_run_logs(arguments.logs), readers.read_run_scores(arguments.scores)
    caption = [
        f"Measured with {readers.training_of(arguments.scores)}; {table.scores_words(scores)}.",
        "A difference above 0 speaks for the claim. It is the better way's percentage less the "
        "worse one's, of the same clips and of runs that share their seed; of communication it is "
        f"{_NEGLIGIBLE:g} % less its share. {table.interval_words(settings)} Means over epochs and "
        "shares have an interval over seeds alone.",
        f"`Not lower` is judged reproduced where the interval lies above -{_MARGIN:g}. A claim on "
        "all K holds where it holds for each: shown is the one that speaks most against it. Other "
        "verdicts are on the sign of the difference, not on its size. Published differences are "
        "of UCF101, of ResNet-152 and 16 learners.",
    ]
    return judge_claims(logs, scores, settings), caption


def not_lower(
    low: float, high: float, published: float | None = None, form: str = "+.2f"
) -> tuple[claims.Verdict, str]:
    """Return the verdict on a claim that a method is not lower than another, and why.

    No interval shows that two are equal: not lower is what lies less than `_MARGIN` below.
    """
    if high < 0:
        return claims.NOT_REPRODUCED, "The interval lies below 0: it is lowered."
    if low == high:
        return claims.judge(low, high, published, form)
    if low > -_MARGIN:
        return claims.REPRODUCED, f"The interval lies above -{_MARGIN:g}."
    return claims.NOT_TESTABLE, f"The interval holds 0 or more, and -{_MARGIN:g} or less too."


def _claims(
    text: str,
    better: str,
    worse: str,
    place: str,
    kinds: Sequence[str],
    measure: str = FINAL,
    rule: claims.Rule = claims.judge,
) -> list[claims.Claim]:
    """Return a claim about each of some streams, or about both together."""
    high, low = (way.removesuffix("-epoch") for way in (better, worse))
    printed = measure == FINAL and high != low
    return [
        claims.Claim(
            *(text, f"003, {place}", better, worse, f"{measure}, {STREAM_NAMES[kind]}"),
            key=kind,
            published=comparisons.published_difference(high, low, kind) if printed else None,
            rule=rule,
        )
        for kind in kinds
    ]


_ONCE, _BATCH, _STATE, _TRANSFER = (f"aavg{variant}-epoch" for variant in (1, 2, 3, 4))

_NOT_LOWERED = "transfer does not lower the accuracy of flow"
_EARLIER = "with transfer, flow is accurate earlier"
_ASYNCHRONOUS = "AAVG ends above asynchronous SGD"
_AHEAD = "one learner alone is ahead in the first epochs"
_FEWER = "AAVG needs fewer samples to equal accuracy than one learner"
_SUPERLINEAR = "AAVG is super-linearly faster to equal accuracy"

CLAIMS = (
    *_claims("the adaptive batch helps", _BATCH, _ONCE, "table I", table.KINDS),
    *_claims("the customised optimiser helps", _STATE, _BATCH, "table I", table.KINDS),
    *_claims(_EARLIER, _TRANSFER, _STATE, "figure 8", ["flow"], FIRST_HALF),
    *_claims(_NOT_LOWERED, _TRANSFER, _STATE, "table I", ["flow"], rule=not_lower),
    *_claims("transfer helps both streams together", _TRANSFER, _STATE, "table I", ["two-stream"]),
    *_claims("AAVG ends above one learner alone", _STATE, ALONE, "figure 9", STREAMS),
    *_claims(_ASYNCHRONOUS, _STATE, "ps_async-k1", "section I", STREAMS),
    *_claims(_AHEAD, ALONE, _STATE, "figure 9", STREAMS, FIRST_QUARTER),
)


@dataclass(frozen=True, kw_only=True)
class _Evidence:
    """The results of all runs together, by way of joining learners and stream."""

    logs: readers.Logs
    measured: Mapping[str, Mapping[readers.RunKey, table.Accuracy]]
    """By `FINAL` (of clips), `FIRST_HALF` and `FIRST_QUARTER` (of epochs)."""
    settings: ExperimentSettings

    def judged(self, claim: claims.Claim) -> claims.Finding:
        """Return the verdict on a claim about accuracy."""
        return claim.judged(self._difference(claim))

    def _difference(self, claim: claims.Claim) -> Estimate | str:
        """Return a claim's difference and its interval, or why there is none."""
        measure = claim.measure.rpartition(", ")[0]
        measured, ways = self.measured[measure], (claim.better, claim.worse)
        if missing := claims.no_runs([way for way in ways if (way, claim.key) not in measured]):
            return missing
        both = [measured[way, claim.key] for way in ways]
        places = readers.shared_seeds([own.seeds for own in both])
        if len(places[0]) < 2:
            return "Fewer than two seeds of both show nothing about the next."
        better, worse = (own.values[place] for own, place in zip(both, places, strict=True))
        if measure == FINAL:
            if better.shape[1] < 2:
                return "Fewer than two validation clips have no interval over clips."
            return table.estimate(better - worse, self.settings)
        # means of the first epochs have an interval over seeds alone
        epochs = -(-better.shape[1] // (2 if measure == FIRST_HALF else 4))
        difference = better[:, :epochs].mean(axis=1) - worse[:, :epochs].mean(axis=1)
        if not np.isfinite(difference).all():
            return "Validation clips are missing."
        return over_seeds([difference], self.settings.confidence)

    def negligible(self, stream: str) -> claims.Finding:
        """Judge that an average an epoch costs next to nothing."""
        logs = self.logs.get((_STATE, stream))
        ours: Estimate | str
        if logs is None:
            ours = claims.no_runs([_STATE])
        elif not logs.counted:
            ours = "Its learners are in one process: nothing was sent."
        elif logs.learning.learners == 1:
            ours = "One learner has nobody to send to."
        elif len(logs.seeds) < 2:
            ours = claims.one_seed([_STATE])
        else:
            ours = over_seeds([_NEGLIGIBLE - logs.shares], self.settings.confidence)
        text, place = "communication at K = -1 is negligible", "003, section III"
        measure = f"{SHARE}, {STREAM_NAMES[stream]}"
        return claims.found(text, place, _STATE, f"{_NEGLIGIBLE:g} %", measure, ours)

    def sooner(self, stream: str) -> list[claims.Finding]:
        """Judge the way to equal accuracy, by samples and by time."""
        ways, name = (_STATE, ALONE), STREAM_NAMES[stream]
        samples: Estimate | str
        speedup: Estimate | str
        samples = speedup = claims.no_runs([way for way in ways if (way, stream) not in self.logs])
        if not samples:
            joined, alone = (self.logs[way, stream] for way in ways)
            gained = gain(alone, joined)
            per_learner = gained.speedup / joined.learning.learners
            if len(gained.accuracy) < 2:
                samples = speedup = claims.one_seed(ways)
            elif np.isnan(gained.accuracy).any():
                samples = speedup = "Validation clips are missing."
            else:
                samples = over_seeds([gained.samples - 1], self.settings.confidence)
                speedup = over_seeds([per_learner - 1], self.settings.confidence)
                if not joined.timed:
                    speedup = "Its learners are in one process: they were not timed side by side."
        return [
            claims.found(_FEWER, "003, section I", *ways, f"{SAMPLES}, {name}", samples),
            claims.found(_SUPERLINEAR, "003, abstract", *ways, f"{SPEEDUP}, {name}", speedup),
        ]

    def of_all(self, every: Sequence[claims.Claim]) -> claims.Finding:
        """Judge that all of these claims hold, by the one that speaks most against it.

        All hold with the confidence of each (an intersection-union test); if one fails, so do all.
        """
        order = (claims.NOT_REPRODUCED, claims.NOT_TESTABLE, claims.REPRODUCED)
        # without runs no difference exists to sort by; such come first
        return min(
            map(self.judged, every),
            key=lambda own: (order.index(own.verdict), not np.isnan(own.low), own.low),
        )


def _time_findings() -> list[claims.Finding]:
    """Judge by the paper's own times that it is super-linear."""
    findings = []
    text = f"{_SUPERLINEAR}, by the times printed"
    for stream, one, many, where, least in TIMES:
        days = many * LEARNERS / (24 * 60)
        bound = f"At least {one / many:.1f} times is printed; linear would be {days:.1f} days."
        ours = bound if least else one / many / LEARNERS - 1
        sides = f"{many} minutes on {LEARNERS}", f"{one} minutes on one"
        measure = f"{SPEEDUP}, {STREAM_NAMES[stream]}"
        findings.append(claims.found(text, f"003, section IV and {where}", *sides, measure, ours))
    return findings


def judge_claims(
    logs: readers.Logs, scores: readers.Scores, settings: ExperimentSettings
) -> list[claims.Finding]:
    """Return a finding for each claim and stream, on the runs that there are.

    Raises:
        InputError: Two runs are of one way.
    """
    ways = readers.by_way(logs)
    curves = {key: table.Accuracy(own.seeds, own.accuracy) for key, own in ways.items()}
    measured = {FINAL: table.accuracies(scores), FIRST_HALF: curves, FIRST_QUARTER: curves}
    evidence = _Evidence(logs=ways, measured=measured, settings=settings)
    # the claims on K, for each K that was tried
    runs = [own.learning for own in logs.values() if own.learning.method == "aavg1"]
    often = [f"aavg1-k{k}" for k in sorted({run.interval for run in runs} - {-1})]
    others = [k for k in (*often, _ONCE) if k != "aavg1-k1"]
    findings = []
    for stream in STREAMS:
        about = comparisons.COMPARISONS["interval"].numbers[stream], [stream]
        best, harmless = [], []
        for k in often or ["aavg1-k1"]:
            best += _claims("K = -1 ends above every other K", _ONCE, k, *about)
        for k in others:
            harmless += _claims("no K ends below K = 1", k, "aavg1-k1", *about, rule=not_lower)
        findings += [evidence.of_all(best), evidence.of_all(harmless)]
    findings += map(evidence.judged, CLAIMS)
    findings += map(evidence.negligible, STREAMS)
    for stream in STREAMS:
        findings += evidence.sooner(stream)
    return [*findings, *_time_findings(), *printed_findings()]


EXPERIMENT = claims_experiment("003", _judged, inputs=readers.LOGS_AND_SCORES, **readers.SETTINGS)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
