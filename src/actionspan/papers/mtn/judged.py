"""Paper 001's claims on our data: the difference each is about, its interval, and a verdict."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from actionspan.evaluation.activitynet import Floats
from actionspan.evaluation.records import EvaluationSettings
from actionspan.evaluation.resampling import interval, seeds_half_width
from actionspan.papers.claims import NOT_TESTABLE, Finding, Verdict, judge
from actionspan.papers.mtn.published import THUMOS14, TableName, published_value
from actionspan.papers.mtn.tables import heading, resample, why_not
from actionspan.papers.mtn.video_scores import VideoScores

LOSS = "lowest validation loss"
# tag-seedN groups what origin-seedN predicts: their seeds differ in pairs
SAME_TRAININGS = frozenset({"tag", "origin"})


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


def judge_claims(
    scores: Mapping[str, VideoScores],
    losses: Mapping[str, Floats],
    settings: EvaluationSettings,
) -> list[Finding]:
    """Return a finding for each measure of each claim, in percent (points) or of the loss.

    Args:
        scores: The scores by video of each method; at least one.
        losses: (S, E) validation losses of each model; NaN where there are none.
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
            else:
                column = metrics.index(metric)
                findings.append(_score_finding(claim, metric, column, scores, means, settings))
    return findings


def _score_finding(
    claim: Claim,
    metric: str,
    column: int,
    scores: Mapping[str, VideoScores],
    means: Mapping[str, tuple[Floats, Floats]],
    settings: EvaluationSettings,
) -> Finding:
    """Compare two methods by a measure, `column` of what `resample` returned."""
    both = scores[claim.better], scores[claim.worse]
    videos = len(both[0].video_ids)
    if videos < 2:
        return _unknown(claim, metric, "One video has no interval over videos.")
    if alone := _one_seed(claim, {known.method: len(known.seeds) for known in both}):
        return _unknown(claim, metric, alone)
    (better, drawn_better), (worse, drawn_worse) = (
        (seeds[:, column], drawn[:, column])  # (S,), (B,)
        for seeds, drawn in (means[claim.better], means[claim.worse])
    )
    difference = float(better.mean() - worse.mean())
    if math.isnan(difference):
        reasons = [
            f"{known.method} has no {heading(metric)}: {why_not(known, metric)}"
            for known, values in zip(both, (better, worse), strict=True)
            if np.isnan(values).any()
        ]
        return _unknown(claim, metric, "; ".join(reasons) + ".")
    paired = {claim.better, claim.worse} == SAME_TRAININGS and both[0].seeds == both[1].seeds
    half = seeds_half_width([better - worse] if paired else [better, worse], settings.confidence)
    low, high = interval(difference, drawn_better - drawn_worse, videos, half, settings.confidence)
    return _finding(claim, metric, difference, low, high, 2)


def _loss_finding(
    claim: Claim, losses: Mapping[str, Floats], settings: EvaluationSettings
) -> Finding:
    """Compare the lowest validation losses by Welch's interval over seeds; lower is better."""
    known = {name: losses[name] for name in (claim.better, claim.worse)}  # (S, E) each
    without = [name for name, curves in known.items() if not np.isfinite(curves).all()]
    if without:
        why = f"The logs of {' and '.join(without)} have epochs without a validation loss."
        return _unknown(claim, LOSS, why)
    if alone := _one_seed(claim, {name: len(curves) for name, curves in known.items()}):
        return _unknown(claim, LOSS, alone)
    better, worse = (curves.min(axis=1) for curves in known.values())  # (S,)
    difference = float(worse.mean() - better.mean())
    half = seeds_half_width([better, worse], settings.confidence)
    low, high = round(difference - half, 9), round(difference + half, 9)
    return _finding(claim, LOSS, difference, low, high, 4)


def _one_seed(claim: Claim, seeds: Mapping[str, int]) -> str:
    """Return why too few trainings tell nothing; empty where each method has two or more."""
    alone = [name for name in (claim.better, claim.worse) if seeds[name] < 2]
    return f"One seed of {' and '.join(alone)} says nothing about the next." if alone else ""


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
    low: float,
    high: float,
    digits: int,
) -> Finding:
    verdict, why = judge(low, high, published_difference(claim, metric), digits)
    return _told(claim, metric, (difference, low, high), verdict, why)


def _unknown(claim: Claim, metric: str, why: str) -> Finding:
    none = float("nan")
    return _told(claim, metric, (none, none, none), NOT_TESTABLE, why)


def _told(
    claim: Claim, metric: str, numbers: tuple[float, float, float], verdict: Verdict, why: str
) -> Finding:
    difference, low, high = numbers
    return Finding(
        claim=claim.text,
        source=claim.source,
        measure=metric.replace("thumos14_", "THUMOS14 "),
        better=claim.better,
        worse=claim.worse,
        difference=difference,
        low=low,
        high=high,
        published=published_difference(claim, metric),
        verdict=verdict,
        why=why,
        digits=4 if metric == LOSS else 2,
    )
