"""The verdicts on paper 001: what is missing, and the differences behind them."""

from dataclasses import replace

import numpy as np
import pytest

from actionspan.evaluation.records import EvaluationSettings
from actionspan.storage.writing import read_tsv, write_tsv
from actionspan_papers.claims import VERDICTS
from actionspan_papers.mtn.claims import CLAIMS, LOSS, judge_claims, mtn_above_bsn
from actionspan_papers.mtn.published import TABLES
from actionspan_papers.mtn.scores import read_video_scores
from evaluation.scores import write_scores
from papers.mtn.features import write_features
from papers.steps import outputs, run_step

SETTINGS = EvaluationSettings(resamples=200)
REPRODUCED, NOT, UNKNOWN = VERDICTS


def test_a_claim_is_about_measures_its_table_prints():
    assert len(CLAIMS) == 26
    for claim in CLAIMS:
        if claim.source == "001, figure 10":
            assert claim.key == LOSS
            assert claim.published is None
        else:
            (table,) = (TABLES[name] for name in TABLES if claim.source == f"001, table {name[-1]}")
            assert claim.key in table.metrics
            assert claim.published > 0


def test_published_differences():
    def difference(table, better, worse, metric):
        wanted = (f"001, table {table[-1]}", better, worse, metric)
        (claim,) = (
            claim
            for claim in CLAIMS
            if (claim.source, claim.better, claim.worse, claim.key) == wanted
        )
        return claim.published

    assert difference("table1", "mtn", "origin", "AUC") == pytest.approx(1.09)
    assert difference("table1", "mtn", "origin", "AR@100") == pytest.approx(0.8)
    assert difference("table1", "origin", "tag", "AUC") == pytest.approx(13.15)
    assert difference("table2", "mtn", "origin", "thumos14_AR@50") == pytest.approx(1.03)
    assert difference("table3", "dense", "se", "AR@1") == pytest.approx(1.4)


def scores_of(folder, *, spread=(0.0, 0.0), **gains):
    """Return scores of two seeds or more, each all its method's gain and its own spread better."""
    levels = (0.2, 0.4, 0.6, 0.3, 0.5)
    paths = [
        write_scores(
            folder / (name if seed == 1 else f"{name}-seed{seed}") / "x.tsv",
            levels,
            gain=gain + own,
        ).rename(folder / f"{name}{'' if seed == 1 else f'-seed{seed}'}.tsv")
        for name, gain in gains.items()
        for seed, own in enumerate(spread, start=1)
    ]
    return read_video_scores(paths)


def findings(scores, losses=None):
    return {
        (one.claim.source, one.claim.better, one.claim.worse, one.claim.measure): one
        for one in judge_claims(scores, losses or {}, SETTINGS)
    }


def test_equal_methods_differ_by_exactly_nothing_and_tell_nothing(tmp_path):
    found = findings(scores_of(tmp_path, mtn=0.1, origin=0.1))[
        "001, table 1", "mtn", "origin", "AUC"
    ]
    assert (found.difference, found.low, found.high) == (0, 0, 0)
    assert found.verdict == UNKNOWN
    assert found.why.startswith("Both are equal")


def test_a_gain_in_every_video_is_reproduced_and_a_loss_is_not(tmp_path):
    found = findings(scores_of(tmp_path, mtn=0.1, origin=0.05, tag=0.3))
    gain = found["001, table 1", "mtn", "origin", "AUC"]
    assert (gain.difference, gain.low, gain.high) == pytest.approx((5, 5, 5))
    assert gain.verdict == REPRODUCED
    worse = found["001, table 1", "origin", "tag", "AR@100"]
    assert (worse.difference, worse.low, worse.high) == pytest.approx((-25, -25, -25))
    assert worse.verdict == NOT


def test_what_the_data_do_not_give_is_not_testable(tmp_path):
    found = findings(scores_of(tmp_path, mtn=0.1, origin=0.05))
    for key, why in {
        ("001, table 1", "origin", "tag", "AUC"): "There are no runs of tag.",
        ("001, table 3", "dense", "se", "AUC"): "There are no runs of dense and se.",
        ("001, table 2", "mtn", "origin", "THUMOS14 AR@500"): (
            "mtn has no AR@500: too few proposals; origin has no AR@500: too few proposals."
        ),
        ("001, figure 10", "mtn", "origin", LOSS): "There are no runs of mtn and origin.",
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
    judged = judge_claims(scores_of(tmp_path, mtn=0.2 + gain, origin=0.2), {}, SETTINGS)
    assert words in mtn_above_bsn(judged)
    assert ("the opposite" in mtn_above_bsn(judged)) == (gain < 0)


def test_one_video_tells_nothing(tmp_path):
    names = ("mtn", "mtn-seed2", "origin", "origin-seed2")
    paths = [write_scores(tmp_path / f"{name}.tsv", (0.5,)) for name in names]
    found = findings(read_video_scores(paths))["001, table 1", "mtn", "origin", "AUC"]
    assert found.verdict == UNKNOWN
    assert found.why == "One video has no interval over videos."


def test_one_seed_says_nothing_about_the_next(tmp_path):
    found = findings(scores_of(tmp_path, spread=(0.0,), mtn=0.2, origin=0.1))
    one = found["001, table 1", "mtn", "origin", "AUC"]
    assert (one.verdict, np.isnan(one.low)) == (UNKNOWN, True)
    assert one.why == "One seed of mtn and origin says nothing about the next."
    more = scores_of(tmp_path, mtn=0.2) | scores_of(tmp_path, spread=(0.0,), origin=0.1)
    one = findings(more)["001, table 1", "mtn", "origin", "AUC"]
    assert (one.verdict, one.why) == (UNKNOWN, "One seed of origin says nothing about the next.")


def test_seeds_that_differ_widen_the_interval_by_welch(tmp_path):
    """Alike in all videos, so that nothing but the seeds is in the interval."""
    scores = scores_of(tmp_path, spread=(0.0, 0.02), mtn=0.1, origin=0.05)
    one = findings(scores)["001, table 1", "mtn", "origin", "AUC"]
    half = 4.3026527 * np.sqrt(2 * (1.0**2))  # 2 degrees of freedom; deviations of 2 over √2
    assert (one.difference, one.low, one.high) == pytest.approx((5, 5 - half, 5 + half))
    assert one.verdict == UNKNOWN


def test_tag_and_origin_share_their_trainings(tmp_path):
    """Their difference is the same in each seed, however much the seeds differ."""
    scores = scores_of(tmp_path, spread=(0.0, 0.04, 0.1), tag=0.1, origin=0.12)
    one = findings(scores)["001, table 1", "origin", "tag", "AUC"]
    assert (one.difference, one.low, one.high) == pytest.approx((2, 2, 2))
    assert one.verdict == REPRODUCED
    apart = scores | {"tag": replace(scores["tag"], seeds=(1, 2, 4))}
    assert findings(apart)["001, table 1", "origin", "tag", "AUC"].verdict == UNKNOWN


LOSSES = {
    "origin": np.array([[3.0, 2.0, 2.5], [3.0, 2.2, 2.1], [2.1, 2.2, 2.3]]),  # lowest 2, 2.1, 2.1
    "mtn": np.array([[3.0, 1.8, 1.5], [2.0, 1.7, 1.9], [1.6, 1.6, 1.9]]),  # 1.5, 1.7 and 1.6
    "cnn2": np.array([[2.1, 2.0], [2.3, 2.2], [2.1, 2.1]]),  # 2.0, 2.2 and 2.1
    "cnn4": np.array([[1.9, 2.0], [1.8, 2.2], [1.8, 2.0]]),  # 1.9, 1.8 and 1.8
}


def test_losses_are_compared_by_the_lowest_of_each_seed(tmp_path):
    found = findings(scores_of(tmp_path, mtn=0.1), LOSSES)
    lower = found["001, figure 10", "mtn", "origin", LOSS]
    assert lower.difference == pytest.approx(6.2 / 3 - 1.6)
    # Welch: variances 0.01/3 and 0.01 over 3 seeds each, and 16/5 degrees of freedom, whose
    # quantile lies between those of 3 and 4
    error = np.sqrt((0.01 / 3 + 0.01) / 3)
    half = lower.high - lower.difference
    assert lower.difference - lower.low == pytest.approx(half)
    assert 2.7764451 * error < half < 3.1824463 * error
    assert lower.verdict == REPRODUCED
    assert found["001, figure 10", "origin", "cnn2", LOSS].verdict == UNKNOWN
    assert found["001, figure 10", "origin", "cnn4", LOSS].verdict == NOT


def test_one_seed_has_no_interval_over_seeds(tmp_path):
    losses = {model: values[:1] for model, values in LOSSES.items()}
    found = findings(scores_of(tmp_path, mtn=0.1), losses)
    for better, worse in (("mtn", "origin"), ("origin", "cnn2")):
        one = found["001, figure 10", better, worse, LOSS]
        assert one.verdict == UNKNOWN
        assert one.why == f"One seed of {better} and {worse} says nothing about the next."


def test_no_validation_loss_leaves_the_claims_about_scores(tmp_path):
    losses = LOSSES | {"cnn2": np.full((2, 3), np.nan)}
    found = findings(scores_of(tmp_path, mtn=0.1, origin=0.05), losses)
    one = found["001, figure 10", "origin", "cnn2", LOSS]
    assert one.verdict == UNKNOWN
    assert one.why == "The logs of cnn2 have epochs without a validation loss."
    assert found["001, figure 10", "mtn", "origin", LOSS].verdict == REPRODUCED
    assert found["001, table 1", "mtn", "origin", "AUC"].verdict == REPRODUCED


def test_the_command_writes_both_forms(tmp_path):
    paths = [
        str(write_scores(tmp_path / f"{name}.tsv", (0.2, 0.4, 0.6), gain=gain))
        for name, gain in (("origin", 0.1), ("mtn", 0.2), ("origin-seed2", 0.1), ("mtn-seed2", 0.2))
    ]
    logs = []
    for name in ("origin", "origin-seed2", "mtn", "mtn-seed2"):
        log = tmp_path / "temporal" / name / "none-1" / "log.tsv"
        log.parent.mkdir(parents=True)
        loss = 1.0 if name.startswith("mtn") else 2.0
        write_tsv(log, ("epoch", "validation_loss"), [(1, 3.0), (2, loss)])
        logs.append(str(log))
    words = ["--features", write_features(tmp_path, "features", "videos")]
    words += outputs(tmp_path, "c")
    run_step("mtn", "claims", *words, "--videos", *paths, "--logs", *logs)
    rows = read_tsv(tmp_path / "c.tsv")
    assert [row["verdict"] for row in rows if row["source"] == "001, figure 10"] == [
        UNKNOWN,
        UNKNOWN,
        REPRODUCED,
    ]
    (auc,) = (
        row
        for row in rows
        if row["measure"] == "AUC" and row["source"] == "001, table 1" and row["better"] == "mtn"
    )
    assert (auc["difference"], auc["difference_low"]) == ("+10.00", "+10.00")
    assert auc["published_difference"] == "+1.09"
    text = (tmp_path / "c.md").read_text()
    assert "features, on videos, subset validation" in text
    counts = [sum(row["verdict"] == verdict for row in rows) for verdict in VERDICTS]
    assert f"{counts[0]} reproduced, {counts[1]} not reproduced, {counts[2]} not testable" in text
    assert len([line for line in text.splitlines() if line.startswith("|")]) == 2 + len(rows)
    assert all(len(row) == 11 for row in rows)
