"""Write a verdict on each claim of paper 001: the difference it is about, and its interval."""

import argparse
import math
from collections.abc import Mapping

import numpy as np

from actionspan.evaluation.records import EvaluationSettings
from actionspan.evaluation.resampling import Floats
from actionspan.papers.claims import Claim, Finding, no_runs, one_seed, write_claims
from actionspan.papers.estimates import Estimate, over_samples_and_seeds, over_seeds
from actionspan.papers.mtn.loss_curves import add_logs, read_losses
from actionspan.papers.mtn.published import ACTIVITYNET, THUMOS14, TableName, published_value
from actionspan.papers.mtn.scores import VideoScores, read_video_scores
from actionspan.papers.mtn.table import (
    add_scores,
    heading,
    measured_on,
    measured_words,
    resample,
    why_not,
)
from actionspan.settings import from_arguments

LOSS = "lowest validation loss"
# tag-seedN groups what origin-seedN predicts: their seeds differ in pairs
SAME_TRAININGS = frozenset({"tag", "origin"})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_scores(parser)
    add_logs(parser)


def run(arguments: argparse.Namespace) -> None:
    """Write the verdicts as TSV and Markdown."""
    settings = from_arguments(EvaluationSettings, arguments)
    scores = read_video_scores(arguments.videos)
    findings = judge_claims(scores, read_losses(arguments.logs), settings)
    measured = f"{measured_on(arguments.features)}, subset {arguments.subset}"
    caption = [
        f"Measured with {measured_words(scores, measured, settings)}",
        "A difference above 0 speaks for the claim. It is the better method's percentage less the "
        "worse one's on the same videos; of losses, which have an interval over seeds alone, it is "
        "the worse model's less the better one's. A verdict is on the sign of the difference, not "
        "on its size. Published differences are of other features and other data.",
    ]
    write_claims(arguments, findings, "001", caption)


def _table(table: TableName, better: str, worse: str, text: str, *metrics: str) -> list[Claim]:
    """Return a claim for each measure whose numbers a table prints."""
    claims = []
    for metric in metrics:
        printed = [published_value(table, method, metric) for method in (better, worse)]
        claims.append(
            Claim(
                text=text,
                source=f"001, table {table.removeprefix('table')}",
                better=better,
                worse=worse,
                measure=metric.replace("thumos14_", "THUMOS14 "),
                key=metric,
                published=None if None in printed else printed[0] - printed[1],  # type: ignore[operator]
            )
        )
    return claims


def _figure(better: str, worse: str, text: str) -> Claim:
    """Return a claim about losses, which figure 10 draws and no table prints."""
    return Claim(
        text=text,
        source="001, figure 10",
        better=better,
        worse=worse,
        measure=LOSS,
        key=LOSS,
        form="+.4f",
    )


_ABLATION = ("AR@1", "AR@100", "AUC")

CLAIMS = (
    *_table("table1", "mtn", "origin", "MTN finds more than BSN", "AR@100", "AUC"),
    *_table("table2", "mtn", "origin", "MTN finds more than BSN", *THUMOS14),
    *_table("table1", "origin", "tag", "BSN finds more than TAG", "AR@100", "AUC"),
    *_table("table3", "se", "origin", "squeeze-excitation helps", *_ABLATION),
    *_table("table3", "dense", "origin", "the Multipath DenseNet helps", *_ABLATION),
    *_table("table3", "mtn", "se", "both together help more than SE alone", *_ABLATION),
    *_table("table3", "mtn", "dense", "both together help more than DenseNet alone", *_ABLATION),
    *_table("table3", "dense", "se", "the DenseNet helps more than SE", *_ABLATION),
    _figure("origin", "cnn2", "2 convolutions have a worse validation loss than 3"),
    _figure("origin", "cnn4", "4 convolutions have a worse validation loss than 3"),
    _figure("mtn", "origin", "MTN's validation loss is lower than BSN's"),
)


def judge_claims(
    scores: Mapping[str, VideoScores], losses: Mapping[str, Floats], settings: EvaluationSettings
) -> list[Finding]:
    """Return a finding for each claim, in percent (points) or of the loss.

    Args:
        scores: The scores by video of each method; at least one.
        losses: (S, E) validation losses of each model; NaN where there are none.
        settings: How the intervals are made.
    """
    metrics = (*ACTIVITYNET, *THUMOS14)
    means = resample(scores, metrics, settings)
    findings = []
    for claim in CLAIMS:
        measured: Mapping[str, VideoScores | Floats] = losses if claim.key == LOSS else scores
        difference: Estimate | str = no_runs(sorted({claim.better, claim.worse} - measured.keys()))
        if not difference and claim.key == LOSS:
            difference = _of_losses(claim, losses, settings)
        elif not difference:
            column = metrics.index(claim.key)
            columns = {
                method: (means[method][0][:, column], means[method][1][:, column])
                for method in (claim.better, claim.worse)
            }
            difference = _of_scores(claim, scores, columns, settings)
        findings.append(claim.judged(difference))
    return findings


def _of_scores(
    claim: Claim,
    scores: Mapping[str, VideoScores],
    means: Mapping[str, tuple[Floats, Floats]],
    settings: EvaluationSettings,
) -> Estimate | str:
    """Return the difference of two methods by (S,) means and (B,) resampled ones, or why not."""
    both = [scores[method] for method in (claim.better, claim.worse)]
    videos = len(both[0].video_ids)
    if videos < 2:
        return "One video has no interval over videos."
    if alone := one_seed([scored.method for scored in both if len(scored.seeds) < 2]):
        return alone
    (better, drawn_better), (worse, drawn_worse) = (means[scored.method] for scored in both)
    difference = float(better.mean() - worse.mean())
    if math.isnan(difference):
        reasons = [
            f"{scored.method} has no {heading(claim.key)}: {why_not(scored, claim.key)}"
            for scored, values in zip(both, (better, worse), strict=True)
            if np.isnan(values).any()
        ]
        return "; ".join(reasons) + "."
    paired = {claim.better, claim.worse} == SAME_TRAININGS and both[0].seeds == both[1].seeds
    groups = [better - worse] if paired else [better, worse]
    drawn = drawn_better - drawn_worse
    return over_samples_and_seeds(difference, groups, drawn, videos, settings.confidence)


def _of_losses(
    claim: Claim, losses: Mapping[str, Floats], settings: EvaluationSettings
) -> Estimate | str:
    """Compare the lowest validation losses by Welch's interval over seeds; lower is better."""
    compared = {name: losses[name] for name in (claim.better, claim.worse)}  # (S, E) each
    without = [name for name, curves in compared.items() if not np.isfinite(curves).all()]
    if without:
        return f"The logs of {' and '.join(without)} have epochs without a validation loss."
    if alone := one_seed([name for name, curves in compared.items() if len(curves) < 2]):
        return alone
    better, worse = (curves.min(axis=1) for curves in compared.values())  # (S,)
    return over_seeds([better, worse], settings.confidence, float(worse.mean() - better.mean()))
