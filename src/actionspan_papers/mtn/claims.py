"""Write a verdict on each claim of paper 001: the difference it is about, and its interval."""

import math
from collections.abc import Sequence

import numpy as np

from actionspan.evaluation.settings import EvaluationSettings
from actionspan_papers import claims
from actionspan_papers.claims import Claim, Finding, claims_experiment
from actionspan_papers.estimates import Estimate, over_seeds
from actionspan_papers.kinds import Flags
from actionspan_papers.mtn import table
from actionspan_papers.mtn.loss_curves import LOGS, Losses, read_losses
from actionspan_papers.mtn.published import METRICS, TABLES, printed_findings

LOSS = "lowest validation loss"
# tag-seedN groups what origin-seedN predicts: their seeds differ in pairs
_SAME_TRAININGS = {"tag", "origin"}


def _judged(arguments: Flags, settings: EvaluationSettings) -> claims.Judged:
    measured = table.read_measured(arguments)
    findings = judge_claims(measured.scores, read_losses(arguments.logs), settings)
    caption = [
        f"Measured with {table.measured_words(*measured, settings)}",
        "A difference above 0 speaks for the claim. It is the better method's percentage less the "
        "worse one's on the same videos; of losses, which have an interval over seeds alone, it is "
        "the worse model's less the better one's. A verdict is on the sign of the difference, not "
        "on its size. Published differences are of other features and other data.",
        mtn_above_bsn(findings),
    ]
    return findings, caption


def mtn_above_bsn(findings: Sequence[Finding]) -> str:
    """Return how many comparisons of tables 1 and 2 show MTN above BSN."""
    text = "MTN finds more than BSN"
    verdicts = [finding.verdict for finding in findings if finding.claim.text == text]
    shown, opposite, _ = map(verdicts.count, claims.VERDICTS)
    sentence = f"{shown} of {len(verdicts)} comparisons show that {text} (origin)"
    return f"{sentence}, {opposite} show the opposite." if opposite else f"{sentence}."


def _claims() -> list[Claim]:
    """Return the claims on each measure of a table, and on the losses that figure 10 draws."""
    tables = {f"001, table {name[-1]}": table for name, table in TABLES.items()}
    every = []
    for row in claims.table_of("mtn", "measured"):
        key, published = row["key"], None
        if row["source"] in tables:
            better, worse = (tables[row["source"]].rows[row[side]] for side in ("better", "worse"))
            published = float(better.values[key]) - float(worse.values[key])
        every.append(claims.claim_of(row, published=published))
    return every


CLAIMS = _claims()


def judge_claims(
    scores: table.Scores, losses: Losses, settings: EvaluationSettings
) -> list[Finding]:
    """Return a finding for each claim, in percent (points) or of the loss.

    The scores are of at least one method; losses are (S, E), NaN where there are none.
    """
    means = table.resample(scores, METRICS, settings)
    findings = []
    for claim in CLAIMS:
        there = losses.keys() if claim.key == LOSS else scores.keys()
        difference: Estimate | str = claims.no_runs(sorted({claim.better, claim.worse} - there))
        if not difference and claim.key == LOSS:
            difference = _of_losses(claim, losses, settings)
        elif not difference:
            difference = _of_scores(claim, scores, means, settings)
        findings.append(claim.judged(difference))
    return findings + printed_findings()


def _of_scores(
    claim: Claim, scores: table.Scores, means: table.Means, settings: EvaluationSettings
) -> Estimate | str:
    """Return the difference of two methods by what `resample` returned, or why there is none."""
    both = [scores[method] for method in (claim.better, claim.worse)]
    if len(both[0].video_ids) < 2:
        return "One video has no interval over videos."
    if alone := claims.one_seed([scored.method for scored in both if len(scored.seeds) < 2]):
        return alone
    better, worse = (means[scored.method][claim.key] for scored in both)
    paired = {claim.better, claim.worse} == _SAME_TRAININGS and both[0].seeds == both[1].seeds
    difference = better.above(worse, settings.confidence, paired=paired)
    if math.isnan(difference.value):
        reasons = [
            f"{scored.method} has no {table.heading(claim.key)}: {table.why_not(scored, claim.key)}"
            for scored, measured in zip(both, (better, worse), strict=True)
            if np.isnan(measured.seeds).any()
        ]
        return "; ".join(reasons) + "."
    return difference


def _of_losses(claim: Claim, losses: Losses, settings: EvaluationSettings) -> Estimate | str:
    """Compare the lowest validation losses by Welch's interval over seeds; lower is better."""
    compared = {name: losses[name] for name in (claim.better, claim.worse)}  # (S, E) each
    without = [name for name, curves in compared.items() if not np.isfinite(curves).all()]
    if without:
        return f"The logs of {' and '.join(without)} have epochs without a validation loss."
    if alone := claims.one_seed([name for name, curves in compared.items() if len(curves) < 2]):
        return alone
    better, worse = (curves.min(axis=1) for curves in compared.values())  # (S,)
    return over_seeds([better, worse], settings.confidence, float(worse.mean() - better.mean()))


EXPERIMENT = claims_experiment(
    "001", _judged, inputs={**table.SCORES, **LOGS}, settings=(EvaluationSettings,)
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
