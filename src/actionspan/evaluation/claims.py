"""Paper 001's claims on our data: the difference each is about, its interval, and a verdict."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from actionspan.evaluation.activitynet import Floats
from actionspan.evaluation.published import THUMOS14, TableName, published_value
from actionspan.evaluation.resampling import draw_seeds, percentile_interval, resampled_means
from actionspan.evaluation.summary import EvaluationSettings
from actionspan.evaluation.tables import heading, resample
from actionspan.evaluation.video_scores import VideoScores

Verdict = Literal["reproduced", "not reproduced", "not testable on this data"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
LOSS = "lowest validation loss"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """That one method is better than another, by some measures."""

    text: str
    source: str
    better: str
    worse: str
    table: TableName | None
    """Where its numbers are printed; None: they are drawn in figure 10, a loss."""
    metrics: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A claim by one measure on our data; a positive difference speaks for the claim.

    Numbers are in percent (points) or, for `LOSS`, of the loss; NaN where there is none.
    """

    claim: Claim
    metric: str
    difference: float
    low: float
    high: float
    published: float | None
    verdict: Verdict
    why: str


def _table(table: TableName, better: str, worse: str, text: str, *metrics: str) -> Claim:
    number = table.removeprefix("table")
    return Claim(
        text=text,
        source=f"001, table {number}",
        better=better,
        worse=worse,
        table=table,
        metrics=metrics,
    )


def _figure(better: str, worse: str, text: str) -> Claim:
    return Claim(
        text=text, source="001, figure 10", better=better, worse=worse, table=None, metrics=(LOSS,)
    )


_ABLATION = ("AR@1", "AR@100", "AUC")

CLAIMS = (
    _table("table1", "mtn", "origin", "MTN finds more than BSN", "AR@100", "AUC"),
    _table("table2", "mtn", "origin", "MTN finds more than BSN", *THUMOS14),
    _table("table1", "origin", "tag", "BSN finds more than TAG", "AR@100", "AUC"),
    _table("table3", "se", "origin", "squeeze-excitation helps", *_ABLATION),
    _table("table3", "dense", "origin", "the Multipath DenseNet helps", *_ABLATION),
    _table("table3", "mtn", "se", "both together help more than SE alone", *_ABLATION),
    _table("table3", "mtn", "dense", "both together help more than DenseNet alone", *_ABLATION),
    _table("table3", "dense", "se", "the DenseNet helps more than SE", *_ABLATION),
    _figure("origin", "cnn2", "2 convolutions have a worse validation loss than 3"),
    _figure("origin", "cnn4", "4 convolutions have a worse validation loss than 3"),
    _figure("mtn", "origin", "MTN's validation loss is lower than BSN's"),
)


def judge(low: float, high: float, published: float | None, digits: int = 2) -> tuple[Verdict, str]:
    """Return the verdict on a claim and one sentence why.

    Args:
        low: Lower end of the interval of the difference; above 0 speaks for the claim.
        high: Its upper end, at least `low`.
        published: The paper's difference; None where it prints none.
        digits: Decimals of numbers in the sentence.
    """
    if low > 0:
        return "reproduced", "The interval lies above 0."
    if high < 0:
        return "not reproduced", "The interval lies below 0: here the order is the other way round."
    if low == high:  # of 0: few videos, all missed or all found by both
        return (
            "not testable on this data",
            "Both are equal in every resample: these data have nothing to tell them apart by.",
        )
    if published is None:
        return (
            "not testable on this data",
            "The interval holds 0, and the paper prints no difference that it could exclude.",
        )
    paper = f"the published {published:+.{digits}f}"
    if low <= published <= high:
        return (
            "not testable on this data",
            f"The interval holds both 0 and {paper}: these data cannot tell them apart.",
        )
    return "not reproduced", f"The interval holds 0 and excludes {paper}."


def judge_claims(
    scores: Mapping[str, VideoScores],
    losses: Mapping[str, Floats],
    settings: EvaluationSettings,
) -> list[Finding]:
    """Return a finding for each measure of each claim.

    Args:
        scores: The scores by video of each method; at least one.
        losses: (S, E) validation losses of each model.
        settings: How the intervals are made.
    """
    metrics = sorted({metric for claim in CLAIMS if claim.table for metric in claim.metrics})
    means = resample(scores, metrics, settings)
    findings = []
    for claim in CLAIMS:
        for metric in claim.metrics:
            missing = {claim.better, claim.worse} - (scores if claim.table else losses).keys()
            if missing:
                why = f"There are no runs of {' and '.join(sorted(missing))}."
                findings.append(_unknown(claim, metric, why))
            elif claim.table is None:
                findings.append(_loss_finding(claim, losses, settings))
            elif len(scores[claim.better].video_ids) < 2:
                why = "One video has no interval over videos."
                findings.append(_unknown(claim, metric, why))
            else:
                column = metrics.index(metric)
                (better, drawn_better), (worse, drawn_worse) = (
                    (mean[column], drawn[:, column])
                    for mean, drawn in (means[claim.better], means[claim.worse])
                )
                findings.append(
                    _finding(claim, metric, better - worse, drawn_better - drawn_worse, settings, 2)
                )
    return findings


def _loss_finding(
    claim: Claim, losses: Mapping[str, Floats], settings: EvaluationSettings
) -> Finding:
    """Compare the lowest validation losses; lower is better."""
    better, worse = losses[claim.better].min(axis=1), losses[claim.worse].min(axis=1)  # (S,)
    if min(len(better), len(worse)) < 2:
        return _unknown(claim, LOSS, "One seed has no interval over seeds.")
    drawn = [
        resampled_means(of, draw_seeds(name, len(of), settings.resamples, settings.seed))
        for name, of in ((claim.worse, worse), (claim.better, better))
    ]
    return _finding(
        claim, LOSS, float(worse.mean() - better.mean()), drawn[0] - drawn[1], settings, 4
    )


def published_difference(claim: Claim, metric: str) -> float | None:
    """Return how far apart the paper prints the two methods; None where it prints no numbers."""
    if claim.table is None:
        return None
    better = published_value(claim.table, claim.better, metric)
    worse = published_value(claim.table, claim.worse, metric)
    return None if better is None or worse is None else better - worse


def _finding(
    claim: Claim,
    metric: str,
    difference: float,
    drawn: Floats,
    settings: EvaluationSettings,
    digits: int,
) -> Finding:
    if math.isnan(difference):
        numbers = f"no {heading(metric)}: too short lists of proposals, or no frame rates"
        return _unknown(claim, metric, f"{claim.better} or {claim.worse} has {numbers}.")
    # sums in another order differ by some 1e-15, and an interval of exactly 0 is not above 0
    low, high = percentile_interval(np.round(drawn, 9), settings.confidence)
    published = published_difference(claim, metric)
    verdict, why = judge(low, high, published, digits)
    return Finding(
        claim=claim,
        metric=metric,
        difference=float(difference),
        low=low,
        high=high,
        published=published,
        verdict=verdict,
        why=why,
    )


def _unknown(claim: Claim, metric: str, why: str) -> Finding:
    none = float("nan")
    return Finding(
        claim=claim,
        metric=metric,
        difference=none,
        low=none,
        high=none,
        published=published_difference(claim, metric),
        verdict="not testable on this data",
        why=why,
    )
