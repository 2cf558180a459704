"""The verdicts on paper 001: what is missing, and the differences behind them."""

from dataclasses import replace

import numpy as np
import pytest

from actionspan.evaluation.settings import EvaluationSettings
from actionspan_papers.mtn.claims import CLAIMS, LOSS, judge_claims, mtn_above_bsn
from actionspan_papers.mtn.published import TABLES
from actionspan_papers.mtn.table import read_video_scores
from evaluation.scores import write_scores
from papers.aavg.runs import named
from papers.mtn.runs import scores_of, write_features, write_log
from papers.steps import NOT, REPRODUCED, UNKNOWN, step_rows

SETTINGS = EvaluationSettings(resamples=200)
AUC = ("001, table 1", "mtn", "origin", "AUC")
TAG_AUC = ("001, table 1", "origin", "tag", "AUC")
MTN_LOSS, CNN2_LOSS, CNN4_LOSS = (
    ("001, figure 10", *models, LOSS)
    for models in (("mtn", "origin"), ("origin", "cnn2"), ("origin", "cnn4"))
)


def test_a_claim_is_about_measures_its_table_prints():
    assert len(CLAIMS) == 28
    for claim in CLAIMS:
        if claim.source == "001, figure 10":
            assert (claim.key, claim.published) == (LOSS, None)
        else:
            (table,) = (TABLES[name] for name in TABLES if claim.source == f"001, table {name[-1]}")
            assert claim.key in table.metrics
            assert claim.published > 0
    # printed in tables 1, 2 and 3
    keys = {(one.source, one.better, one.worse, one.key): one.published for one in CLAIMS}
    recall = keys["001, table 2", "mtn", "origin", "thumos14_AR@50"]
    found = (keys[AUC], keys[TAG_AUC], recall, keys["001, table 3", "dense", "se", "AR@1"])
    assert found == pytest.approx((1.09, 13.15, 1.03, 1.4))


def gained(folder, *, spread=(0.0, 0.0), **gains):
    """Return scores of two seeds or more, each all its method's gain and its own spread better."""
    paths = [
        write_scores(folder / f"{run}.tsv", (0.2, 0.4, 0.6, 0.3, 0.5), gain=gain + own)
        for name, gain in gains.items()
        for run, own in zip(named(name, len(spread)), spread, strict=True)
    ]
    return read_video_scores(paths)


def findings(scores, losses=None):
    judged = judge_claims(scores, losses or {}, SETTINGS)
    return {
        (one.claim.source, one.claim.better, one.claim.worse, one.claim.measure): one
        for one in judged
    }


def ends(finding):
    return finding.difference, finding.low, finding.high


def test_differences_of_scores_that_are_equal_better_or_worse_in_every_video(tmp_path):
    found = findings(gained(tmp_path, mtn=0.1, origin=0.05, tag=0.3))
    assert (*ends(found[AUC]), found[AUC].verdict) == (*[pytest.approx(5)] * 3, REPRODUCED)
    worse = found["001, table 1", "origin", "tag", "AR@100"]
    assert (*ends(worse), worse.verdict) == (*[pytest.approx(-25)] * 3, NOT)
    equal = findings(gained(tmp_path, mtn=0.1, origin=0.1))[AUC]
    assert (*ends(equal), equal.verdict) == (0, 0, 0, UNKNOWN)
    assert equal.why.startswith("Both are equal")


def test_what_the_data_do_not_give_is_not_testable(tmp_path):
    found = findings(gained(tmp_path, mtn=0.1, origin=0.05))
    for key, why in {
        TAG_AUC: "Runs of tag are missing.",
        ("001, table 3", "dense", "se", "AUC"): "Runs of dense and se are missing.",
        ("001, table 2", "mtn", "origin", "THUMOS14 AR@500"): (
            "mtn has no AR@500: too few proposals; origin has no AR@500: too few proposals."
        ),
        MTN_LOSS: "Runs of mtn and origin are missing.",
    }.items():
        assert found[key].verdict == UNKNOWN
        assert found[key].why.startswith(why)
        assert np.isnan(found[key].difference)
    assert found["001, table 2", "mtn", "origin", "THUMOS14 AR@100"].verdict == REPRODUCED


@pytest.mark.parametrize(
    ("gain", "words"),
    [(0.1, "4 of 6 comparisons show"), (0.0, "0 of 6 comparisons show"), (-0.1, "4 show the oppo")],
)
def test_the_page_says_whether_mtn_is_above_bsn(tmp_path, gain, words):
    """Counted from the verdicts: AR@200 and AR@500 have no value here."""
    judged = judge_claims(gained(tmp_path, mtn=0.2 + gain, origin=0.2), {}, SETTINGS)
    assert words in mtn_above_bsn(judged)
    assert ("the opposite" in mtn_above_bsn(judged)) == (gain < 0)


def test_one_video_or_one_seed_tells_nothing(tmp_path):
    one_video = scores_of(tmp_path, dict.fromkeys(named("mtn", 2) + named("origin", 2), (0.5,)))
    one_seed = gained(tmp_path, spread=(0.0,), mtn=0.2, origin=0.1)
    one_each = gained(tmp_path, mtn=0.2) | gained(tmp_path, spread=(0.0,), origin=0.1)
    for scores, why in (
        (one_video, "One video has no interval over videos."),
        (one_seed, "One seed of mtn and origin shows nothing about the next."),
        (one_each, "One seed of origin shows nothing about the next."),
    ):
        found = findings(scores)[AUC]
        assert (found.verdict, found.why) == (UNKNOWN, why)
        assert np.isnan(found.low)


def test_seeds_that_differ_widen_the_interval_by_welch(tmp_path):
    """Alike in all videos, so that nothing but the seeds is in the interval."""
    one = findings(gained(tmp_path, spread=(0.0, 0.02), mtn=0.1, origin=0.05))[AUC]
    half = 4.3026527 * np.sqrt(2 * (1.0**2))  # 2 degrees of freedom; deviations of 2 over √2
    assert ends(one) == pytest.approx((5, 5 - half, 5 + half))
    assert one.verdict == UNKNOWN


def test_tag_and_origin_share_their_trainings(tmp_path):
    """Their difference is the same in each seed, however much the seeds differ."""
    scores = gained(tmp_path, spread=(0.0, 0.04, 0.1), tag=0.1, origin=0.12)
    one = findings(scores)[TAG_AUC]
    assert ends(one) == pytest.approx((2, 2, 2))
    assert one.verdict == REPRODUCED
    apart = scores | {"tag": replace(scores["tag"], seeds=(1, 2, 4))}
    assert findings(apart)[TAG_AUC].verdict == UNKNOWN


LOSSES = {
    "origin": np.array([[3.0, 2.0, 2.5], [3.0, 2.2, 2.1], [2.1, 2.2, 2.3]]),  # lowest 2, 2.1, 2.1
    "mtn": np.array([[3.0, 1.8, 1.5], [2.0, 1.7, 1.9], [1.6, 1.6, 1.9]]),  # 1.5, 1.7 and 1.6
    "cnn2": np.array([[2.1, 2.0], [2.3, 2.2], [2.1, 2.1]]),  # 2.0, 2.2 and 2.1
    "cnn4": np.array([[1.9, 2.0], [1.8, 2.2], [1.8, 2.0]]),  # 1.9, 1.8 and 1.8
}


def test_losses_are_compared_by_the_lowest_of_each_seed(tmp_path):
    found = findings(gained(tmp_path, mtn=0.1), LOSSES)
    lower = found[MTN_LOSS]
    assert lower.difference == pytest.approx(6.2 / 3 - 1.6)
    # Welch: variances 0.01/3 and 0.01 over 3 seeds each, and 16/5 degrees of freedom, whose
    # quantile lies between those of 3 and 4
    error = np.sqrt((0.01 / 3 + 0.01) / 3)
    half = lower.high - lower.difference
    assert lower.difference - lower.low == pytest.approx(half)
    assert 2.7764451 * error < half < 3.1824463 * error
    judged = [found[key].verdict for key in (MTN_LOSS, CNN2_LOSS, CNN4_LOSS)]
    assert judged == [REPRODUCED, UNKNOWN, NOT]


def test_one_seed_or_no_validation_loss_leaves_claims_open(tmp_path):
    one_seed = {model: own[:1] for model, own in LOSSES.items()}
    found = findings(gained(tmp_path, mtn=0.1), one_seed)[MTN_LOSS]
    why = "One seed of mtn and origin shows nothing about the next."
    assert (found.verdict, found.why) == (UNKNOWN, why)
    losses = LOSSES | {"cnn2": np.full((2, 3), np.nan)}
    found = findings(gained(tmp_path, mtn=0.1, origin=0.05), losses)
    assert found[CNN2_LOSS].verdict == UNKNOWN
    assert found[CNN2_LOSS].why == "The logs of cnn2 have epochs without a validation loss."
    assert found[MTN_LOSS].verdict == found[AUC].verdict == REPRODUCED


def test_the_command_writes_both_forms(tmp_path):
    seeds = [*named("origin", 2), *named("mtn", 2)]
    gains, losses = (dict(zip(seeds, own, strict=True)) for own in ((1, 1, 2, 2), (2, 2, 1, 1)))
    paths = [
        write_scores(tmp_path / f"{name}.tsv", (0.2, 0.4, 0.6), gain=gains[name] / 10)
        for name in seeds
    ]
    logs = [write_log(tmp_path, name, (3.0, losses[name])) for name in seeds]
    words = ["--features", write_features(tmp_path, "features", "videos"), "--videos", *paths]
    rows = step_rows(tmp_path, "mtn", "claims", *words, "--logs", *logs)
    of_losses = [row["verdict"] for row in rows if row["source"] == "001, figure 10"]
    assert of_losses == [UNKNOWN, UNKNOWN, REPRODUCED]
    keys = {(row["source"], row["better"], row["worse"], row["measure"]): row for row in rows}
    assert (keys[AUC]["difference"], keys[AUC]["difference_low"]) == ("+10.00", "+10.00")
    assert keys[AUC]["published_difference"] == "+1.09"
    text = (tmp_path / "claims.md").read_text()
    assert "features, on videos, subset validation" in text
    assert len([line for line in text.splitlines() if line.startswith("|")]) == 2 + len(rows)
