"""Write a verdict on each claim of paper 003: differences of our runs, and their intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from actionspan_papers import claims
from actionspan_papers.aavg import comparisons, readers, table
from actionspan_papers.aavg.comparisons import STREAM_NAMES, STREAMS, ExperimentSettings
from actionspan_papers.aavg.published import LEARNERS, TIMES, printed_findings, published_difference
from actionspan_papers.aavg.times import ALONE, gain
from actionspan_papers.claims import Finding, claims_experiment
from actionspan_papers.estimates import Estimate, over_seeds
from actionspan_papers.kinds import Flags

_MARGIN = 1.0
"""Points that an accuracy may be lower and still count as not lowered."""
_NEGLIGIBLE = 1.0
"""Percent of the time of training that communication may take and be negligible."""
_STATE = "aavg3-epoch"
_STREAMS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("batch", "state"), table.KINDS),
    **dict.fromkeys(("earlier", "not_lowered"), ("flow",)),
    "both": (table.TWO_STREAM,),
    **dict.fromkeys(("alone", "asynchronous", "ahead"), STREAMS),
}
"""The streams that claims on accuracy are about, by their key in measured.tsv."""
_FIRST = {"earlier": 2, "ahead": 4}
"""Claims on the mean of the first epochs, of a half or a quarter; others are on the whole."""
_ROWS = {row["key"]: row for row in claims.table_of("aavg", "measured")}


def _judged(arguments: Flags, settings: ExperimentSettings) -> claims.Judged:
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


@dataclass(frozen=True, kw_only=True)
class _Evidence:
    """The results of all runs together, by way of joining learners and stream."""

    logs: readers.Logs
    accuracies: Mapping[readers.RunKey, table.Accuracy]
    """Of the validation clips."""
    settings: ExperimentSettings

    def accuracy(self, key: str, stream: str, **case: str) -> Finding:
        """Return the verdict on a claim about the accuracy of a stream, or of both together."""
        rule = not_lower if key in ("harmless", "not_lowered") else claims.judge
        words = {"stream": STREAM_NAMES[stream], **case}
        better, worse = (_ROWS[key][side].format_map(words) for side in ("better", "worse"))
        published = None
        if key not in _FIRST:
            high, low = (way.removesuffix("-epoch") for way in (better, worse))
            published = published_difference(high, low, stream)
        claim = claims.claim_of(_ROWS[key], words, published=published, rule=rule)
        return claim.judged(self._difference((better, worse), stream, _FIRST.get(key)))

    def _difference(self, ways: Sequence[str], stream: str, part: int | None) -> Estimate | str:
        """Return the difference of two ways and its interval, or why there is none.

        It is of the first epochs, one in `part`, where that is given.
        """
        measured = (
            {key: table.Accuracy(own.seeds, own.accuracy) for key, own in self.logs.items()}
            if part
            else self.accuracies
        )
        if missing := claims.no_runs([way for way in ways if (way, stream) not in measured]):
            return missing
        both = [measured[way, stream] for way in ways]
        places = readers.shared_seeds([own.seeds for own in both])
        if len(places[0]) < 2:
            return "Fewer than two seeds of both show nothing about the next."
        better, worse = (own.values[place] for own, place in zip(both, places, strict=True))
        if not part:
            if better.shape[1] < 2:
                return "Fewer than two validation clips have no interval over clips."
            return table.estimate(better - worse, self.settings)
        # means of the first epochs have an interval over seeds alone
        epochs = -(-better.shape[1] // part)
        difference = better[:, :epochs].mean(axis=1) - worse[:, :epochs].mean(axis=1)
        if not np.isfinite(difference).all():
            return "Validation clips are missing."
        return over_seeds([difference], self.settings.confidence)

    def negligible(self, stream: str) -> Estimate | str:
        """Return by how much an average an epoch costs less than next to nothing."""
        logs = self.logs.get((_STATE, stream))
        if logs is None:
            return claims.no_runs([_STATE])
        if not logs.counted:
            return "Its learners are in one process: nothing was sent."
        if logs.learning.learners == 1:
            return "One learner has nobody to send to."
        if len(logs.seeds) < 2:
            return claims.one_seed([_STATE])
        return over_seeds([_NEGLIGIBLE - logs.shares], self.settings.confidence)

    def sooner(self, stream: str) -> dict[str, claims.Difference]:
        """Return the gain on the way to equal accuracy, of samples and of time."""
        ways = (_STATE, ALONE)
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
        return {"fewer": samples, "sooner": speedup}


def _of_all(findings: Sequence[Finding]) -> Finding:
    """Judge that all of these claims hold, by the one that speaks most against it.

    All hold with the confidence of each (an intersection-union test); if one fails, so do all.
    """
    order = (claims.NOT_REPRODUCED, claims.NOT_TESTABLE, claims.REPRODUCED)
    # without runs no difference exists to sort by; such come first
    return min(findings, key=lambda own: (order.index(own.verdict), not np.isnan(own.low), own.low))


def _time_findings() -> list[Finding]:
    """Judge by the paper's own times that it is super-linear."""
    findings = []
    for stream, one, many, place, least in TIMES:
        days = many * LEARNERS / (24 * 60)
        bound = f"At least {one / many:.1f} times is printed; linear would be {days:.1f} days."
        case = {"stream": STREAM_NAMES[stream], "one": one, "many": many}
        case |= {"learners": LEARNERS, "place": place}
        ours = {"by_times": bound if least else one / many / LEARNERS - 1}
        findings += claims.measured("aavg", ours, case)
    return findings


def judge_claims(
    logs: readers.Logs, scores: readers.Scores, settings: ExperimentSettings
) -> list[Finding]:
    """Return a finding for each claim and stream, on the runs that there are.

    Raises:
        InputError: Two runs are of one way.
    """
    accuracies = table.accuracies(scores)
    evidence = _Evidence(logs=readers.by_way(logs), accuracies=accuracies, settings=settings)
    # the claims on K, for each K that was tried
    runs = [own.learning for own in logs.values() if own.learning.method == "aavg1"]
    often = [f"aavg1-k{k}" for k in sorted({run.interval for run in runs} - {-1})]
    others = [k for k in (*often, "aavg1-epoch") if k != "aavg1-k1"]
    findings = []
    for stream in STREAMS:
        place = comparisons.COMPARISONS["interval"].numbers[stream]
        for key, every in (("best", often or ["aavg1-k1"]), ("harmless", others)):
            found = [evidence.accuracy(key, stream, k=k, place=place) for k in every]
            findings.append(_of_all(found))
    for key, streams in _STREAMS.items():
        findings += [evidence.accuracy(key, stream) for stream in streams]
    for stream in STREAMS:
        case = {"stream": STREAM_NAMES[stream], "negligible": _NEGLIGIBLE}
        ours = {"negligible": evidence.negligible(stream)}
        findings += claims.measured("aavg", ours, case)
    for stream in STREAMS:
        case = {"stream": STREAM_NAMES[stream]}
        findings += claims.measured("aavg", evidence.sooner(stream), case)
    return [*findings, *_time_findings(), *printed_findings()]


EXPERIMENT = claims_experiment("003", _judged, inputs=readers.LOGS_AND_SCORES, **readers.SETTINGS)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
