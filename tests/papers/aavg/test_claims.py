"""Table I and the verdicts of paper 003: exact means, intervals by hand, every verdict."""

import math
from pathlib import Path

import numpy as np
import pytest

from actionspan.errors import InputError
from actionspan.storage.writing import read_tsv
from actionspan_papers.aavg.claims import (
    FINAL,
    FIRST_HALF,
    FIRST_QUARTER,
    SHARE,
    judge_claims,
    not_lower,
)
from actionspan_papers.aavg.comparisons import STREAM_NAMES, published_difference
from actionspan_papers.aavg.readers import read_run_logs, read_run_scores
from actionspan_papers.aavg.settings import ExperimentSettings
from actionspan_papers.aavg.table import TWO_STREAM, accuracies, estimate
from actionspan_papers.claims import VERDICTS
from papers.aavg.runs import named, write_log, write_scores
from papers.steps import outputs, run_step

SETTINGS = ExperimentSettings(resamples=200)
REPRODUCED, NOT, UNKNOWN = VERDICTS
T95 = 12.706204736  # of one degree of freedom
WORDS = "a network, on some clips"


def scores_of(folder, stream="rgb", **runs):
    """Write the scores of ways of training, each seed given by the clips it has right."""
    return [
        write_scores(folder, name, stream, [0.75 if right else 0.25 for right in clips])
        for run, seeds in runs.items()
        for name, clips in zip(named(run.replace("_", "-"), len(seeds)), seeds, strict=True)
    ]


def test_both_streams_together_are_the_mean_of_their_probabilities(tmp_path):
    paths = [
        write_scores(tmp_path, "aavg1-epoch-2", "rgb", [0.9, 0.4, 0.4, 0.6]),
        write_scores(tmp_path, "aavg1-epoch-2", "flow", [0.2, 0.3, 0.8, 0.45]),
    ]
    found = accuracies(read_run_scores(paths))
    assert found["aavg1-epoch", "rgb"].values.tolist() == [[100, 0, 0, 100]]
    assert found["aavg1-epoch", "flow"].values.tolist() == [[0, 0, 100, 0]]
    assert found["aavg1-epoch", TWO_STREAM].values.tolist() == [[100, 0, 100, 100]]


def test_both_streams_are_paired_by_seed(tmp_path):
    paths = [
        write_scores(tmp_path, "aavg1-epoch-2", "rgb", [0.9, 0.9]),
        write_scores(tmp_path, "aavg1-epoch-2-seed3", "rgb", [0.1, 0.9]),
        write_scores(tmp_path, "aavg1-epoch-2-seed2", "flow", [0.1, 0.1]),
        write_scores(tmp_path, "aavg1-epoch-2-seed3", "flow", [0.8, 0.2]),
    ]
    both = accuracies(read_run_scores(paths))["aavg1-epoch", TWO_STREAM]
    assert both.seeds == [3]
    assert both.values.tolist() == [[0, 100]]
    assert ("aavg1-epoch", TWO_STREAM) not in accuracies(read_run_scores([paths[0], paths[2]]))


def test_rgb_of_aavg4_is_that_of_aavg3(tmp_path):
    paths = [
        write_scores(tmp_path, "aavg3-epoch-2", "rgb", [0.9, 0.1, 0.9]),
        write_scores(tmp_path, "aavg4-epoch-2", "flow", [0.3, 0.95, 0.3]),
    ]
    found = accuracies(read_run_scores(paths))
    assert found["aavg4-epoch", "rgb"].values.tolist() == [[100, 0, 100]]
    assert found["aavg4-epoch", TWO_STREAM].values.tolist() == [[100, 100, 100]]
    own = write_scores(tmp_path, "aavg4-epoch-2", "rgb", [0.1, 0.1, 0.1])
    assert not accuracies(read_run_scores([*paths, own]))["aavg4-epoch", "rgb"].values.any()


def test_the_interval_joins_seeds_and_clips():
    """All clips alike: nothing but the seeds. All seeds alike: nothing but the clips."""
    found = estimate(np.array([[10.0] * 4, [20.0] * 4]), SETTINGS)
    assert (found.value, found.high - found.low) == pytest.approx((15, 2 * T95 * 5))
    values = np.array([[0.0, 100.0, 100.0, 100.0]] * 3)
    found = estimate(values, SETTINGS)
    assert found.value == 75
    one = estimate(values[:1], SETTINGS)
    assert (found.low, found.high) == (one.low, one.high)
    assert found.low < 75 < found.high
    assert one == estimate(values[:1], SETTINGS)


def test_the_table(tmp_path):
    right = (1, 1, 1, 0)
    paths = [
        *scores_of(tmp_path, aavg1_epoch_2=[right, right], aavg3_epoch_2=[(1, 1, 1, 1)] * 2),
        *scores_of(tmp_path, "flow", aavg1_epoch_2=[(0, 0, 0, 0)] * 2, none_k1_1=[right]),
    ]
    words = [*outputs(tmp_path, "t"), "--resamples", 100]
    run_step("aavg", "table", *words, "--scores", *paths)
    one, two, three, four = read_tsv(tmp_path / "t.tsv")
    assert [row["method"] for row in (one, two, three, four)] == [f"aavg{n}" for n in range(1, 5)]
    assert (one["seeds"], one["rgb"], one["flow"]) == ("2", "75.00", "0.00")
    assert 0 <= float(one["rgb_low"]) < 75 < float(one["rgb_high"]) <= 100
    assert one["two-stream_published_UCF101"] == "88.3"
    assert one["two-stream_published_HMDB51"] == ""
    assert (two["seeds"], two["rgb"], two["rgb_published_UCF101"]) == ("", "", "83.7")
    assert (three["rgb"], three["rgb_low"], three["rgb_high"]) == ("100.00",) * 3
    assert (four["seeds"], four["rgb"], four["flow"]) == ("", "", "")
    assert four["two-stream_published_HMDB51"] == "67.9"
    text = (tmp_path / "t.md").read_text()
    assert WORDS in text
    assert "4 validation clips of 2 classes, 25 positions of each" in text
    rows = [line for line in text.splitlines() if line.startswith("| aavg")]
    assert "| 100.00 [100.00, 100.00] |" in rows[2]
    assert rows[3].endswith("| 85.6 | 84.7 | 93.04 | 61.4 | 56.0 | 67.9 |")


def test_without_validation_clips_the_table_has_the_published_numbers_alone(tmp_path):
    path = write_scores(tmp_path, "aavg1-epoch-2", "rgb", [])
    words = [*outputs(tmp_path, "t"), "--scores", path]
    run_step("aavg", "table", *words)
    assert read_tsv(tmp_path / "t.tsv")[0]["rgb"] == ""


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"clips": ["clip0", "other"]}, "clips are not those of"),
        ({"classes": ["calm", "war"]}, "classes are not those of"),
        ({"labels": [1, 0]}, "labels are not those of"),
        ({"samples": 5}, "samples are not those of"),
        ({"labels": [0, 2]}, "not the scores of a classifier's validation clips"),
        ({"labels": [0]}, "not the scores"),
        ({"probabilities": [[0.5, 0.5]]}, "not the scores"),
        ({"probabilities": [[0.5, 0.5], [0.5, float("nan")]]}, "not the scores"),
        ({"clips": None}, "not the scores"),
    ],
)
def test_other_scores_are_named(tmp_path, changed, message):
    first = write_scores(tmp_path, "aavg1-epoch-2", "rgb", [0.5, 0.6])
    other = write_scores(tmp_path, "aavg1-epoch-2-seed2", "rgb", [0.5, 0.6], **changed)
    with pytest.raises(InputError, match=f"seed2/rgb/scores.json: {message}"):
        read_run_scores([first, other])


def test_published_differences():
    assert published_difference("aavg2", "aavg1", "rgb") == pytest.approx(2.1)
    assert published_difference("aavg4", "aavg3", "two-stream") == pytest.approx(1.64)
    assert published_difference("aavg4", "aavg3", "flow") == 0
    assert published_difference("aavg3", "none-k1", "rgb") is None


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.5, 2.0, REPRODUCED),
        (-0.9, 2.0, REPRODUCED),
        (-1.0, 2.0, UNKNOWN),
        (-0.9, 0.0, REPRODUCED),
        (-0.9, -0.1, NOT),
        (-5.0, -2.0, NOT),
        (0.0, 0.0, UNKNOWN),
    ],
)
def test_not_lower(low, high, verdict):
    assert not_lower(low, high)[0] == verdict


def findings(logs=(), scores=()):
    return {
        (one.claim.text, one.claim.measure): one
        for one in judge_claims(read_run_logs(logs), read_run_scores(scores), SETTINGS)
    }


def test_the_docs_count_the_verdicts():
    page = Path(__file__).parents[3] / "docs" / "benchmarks.md"
    rows = judge_claims({}, {}, SETTINGS)
    assert f"`papers/aavg/claims.md` has {len(rows)} verdicts" in page.read_text()


def level(right, clips=40):
    """Return clips of which so many are right."""
    return [number < right for number in range(clips)]


def test_a_claim_holds_where_the_same_clips_and_seeds_speak_for_it(tmp_path):
    scores = scores_of(
        tmp_path,
        aavg1_epoch_2=[level(10), level(20), level(30)],
        aavg2_epoch_2=[level(18), level(28), level(38)],  # 8 clips, whatever the seed
        aavg3_epoch_2=[level(10), level(20), level(30)],
    )
    found = findings(scores=scores)
    one = found["the adaptive batch helps", f"{FINAL}, RGB"]
    assert (one.difference, one.verdict) == (20, REPRODUCED)
    assert (one.claim.better, one.claim.worse) == ("aavg2-epoch", "aavg1-epoch")
    assert one.claim.published == pytest.approx(2.1)
    # the seeds differ by exactly 20 each, so that only clips are in the interval
    by_clip = np.array([[100.0 * (b - a) for a, b in zip(level(20), level(28), strict=True)]] * 3)
    assert one.low == pytest.approx(estimate(by_clip, SETTINGS).low, abs=10)
    other = found["the customised optimiser helps", f"{FINAL}, RGB"]
    assert (other.difference, other.verdict) == (-20, NOT)
    assert found["the adaptive batch helps", f"{FINAL}, flow"].why == (
        "There are no runs of aavg2-epoch and aavg1-epoch."
    )


def test_differences_are_of_the_seeds_that_both_have(tmp_path):
    scores = scores_of(
        tmp_path,
        aavg1_epoch_2=[level(10), level(20), level(0), level(40)],
        aavg2_epoch_2=[level(14), level(24)],
    )
    found = findings(scores=scores)["the adaptive batch helps", f"{FINAL}, RGB"]
    assert found.difference == pytest.approx(10)
    one_each = findings(scores=[scores[0], scores[-1]])["the adaptive batch helps", f"{FINAL}, RGB"]
    assert one_each.why == "Fewer than two seeds of both say nothing about the next."
    assert math.isnan(one_each.low)


def test_seeds_that_disagree_leave_a_claim_open(tmp_path):
    scores = scores_of(
        tmp_path,
        aavg1_epoch_2=[level(10), level(10)],
        aavg2_epoch_2=[level(12), level(30)],
    )
    found = findings(scores=scores)["the adaptive batch helps", f"{FINAL}, RGB"]
    assert found.difference == pytest.approx(27.5)
    assert found.high - found.difference >= T95 * 22.5 - 1e-6
    assert found.verdict == UNKNOWN


def test_one_clip_says_nothing(tmp_path):
    scores = scores_of(tmp_path, aavg1_epoch_2=[[0]] * 2, aavg2_epoch_2=[[1]] * 2)
    found = findings(scores=scores)["the adaptive batch helps", f"{FINAL}, RGB"]
    assert found.why == "Fewer than two validation clips have no interval over clips."


BEST = ("K = -1 ends above every other K", f"{FINAL}, RGB")
HARMLESS = ("no K ends below K = 1", f"{FINAL}, RGB")


def k_runs(folder, **levels):
    """Return logs and scores of AAVG1, so many of 40 clips right for each K."""
    logs = [
        write_log(folder, name, "rgb", [0.5] * 2)
        for run in levels
        for name in named(f"aavg1-{run}-2", 2)
    ]
    runs = {f"aavg1_{run}_2": [level(right)] * 2 for run, right in levels.items()}
    return {"logs": logs, "scores": scores_of(folder, **runs)}


def test_k_is_judged_by_the_other_that_speaks_most_against_it(tmp_path):
    found = findings(**k_runs(tmp_path, k1=10, k2=25, k8=20, epoch=38))
    assert (found[BEST].verdict, found[BEST].claim.worse) == (REPRODUCED, "aavg1-k2")
    assert found[BEST].difference == pytest.approx(32.5)
    assert found[BEST].claim.published is None
    assert (found[HARMLESS].verdict, found[HARMLESS].claim.better) == (REPRODUCED, "aavg1-k8")


def test_one_k_that_is_better_is_enough(tmp_path):
    found = findings(**k_runs(tmp_path, k1=30, k2=10, k8=39, epoch=20))
    assert (found[BEST].verdict, found[BEST].claim.worse) == (NOT, "aavg1-k8")
    assert (found[HARMLESS].verdict, found[HARMLESS].claim.better) == (NOT, "aavg1-k2")


def test_one_k_that_is_as_good_leaves_it_open(tmp_path):
    found = findings(**k_runs(tmp_path, k1=10, k4=38, epoch=38))
    assert (found[BEST].verdict, found[BEST].claim.worse) == (UNKNOWN, "aavg1-k4")
    assert found[BEST].why.startswith("Both are equal in every resample")
    missing = findings(**k_runs(tmp_path / "other", k2=10, k4=38))
    assert missing[BEST].why == "There are no runs of aavg1-epoch."
    assert missing[HARMLESS].why == "There are no runs of aavg1-k1."


def curves(folder, stream, **runs):
    return [
        write_log(folder, name, stream, accuracies)
        for run, seeds in runs.items()
        for name, accuracies in zip(named(run.replace("_", "-"), len(seeds)), seeds, strict=True)
    ]


def test_the_first_half_of_the_epochs(tmp_path):
    """Of 5 epochs the first 3."""
    logs = curves(
        tmp_path,
        "flow",
        aavg3_epoch_2=[[0.1, 0.2, 0.3, 0.9, 0.9], [0.2, 0.2, 0.2, 0.9, 0.9]],
        aavg4_epoch_2=[[0.3, 0.4, 0.5, 0.1, 0.1], [0.4, 0.5, 0.6, 0.1, 0.1]],
    )
    found = findings(logs=logs)
    one = found["with transfer, flow is accurate earlier", f"{FIRST_HALF}, flow"]
    half = T95 * 5  # differences of 20 and 30 points
    assert (one.difference, one.low, one.high) == pytest.approx((25, 25 - half, 25 + half))
    assert (one.verdict, one.claim.published) == (UNKNOWN, None)


def test_the_first_quarter_of_the_epochs(tmp_path):
    """Of 8 epochs the first 2; alike in both seeds, so that the interval is a point."""
    late = [0.9] * 6
    logs = curves(
        tmp_path,
        "rgb",
        aavg3_epoch_2=[[0.1, 0.2, *late], [0.2, 0.3, *late]],
        none_k1_1=[[0.3, 0.2, *late], [0.4, 0.3, *late]],
    )
    claim = "one learner alone is ahead in the first epochs"
    one = findings(logs=logs)[claim, f"{FIRST_QUARTER}, RGB"]
    assert (one.difference, one.low, one.verdict) == (pytest.approx(10), one.high, REPRODUCED)
    blind = curves(
        tmp_path, "flow", aavg3_epoch_2=[[0.5] * 8] * 2, none_k1_1=[[float("nan")] * 8] * 2
    )
    assert findings(logs=blind)[claim, f"{FIRST_QUARTER}, flow"].why == (
        "There is no validation clip."
    )


@pytest.mark.parametrize(
    ("shares", "verdict"), [((0.1, 0.1), REPRODUCED), ((0.1, 0.9), UNKNOWN), ((3.0, 3.0), NOT)]
)
def test_negligible_is_less_than_a_percent(tmp_path, shares, verdict):
    logs = [
        write_log(
            tmp_path,
            name,
            "rgb",
            [0.5, 0.5],
            seconds=[50.0, 50.0],
            communication_seconds=[share, 0.0],
        )
        for name, share in zip(named("aavg3-epoch-2", 2), shares, strict=True)
    ]
    one = findings(logs=logs)["communication at K = -1 is negligible", f"{SHARE}, RGB"]
    assert one.difference == pytest.approx(1 - np.mean(shares))
    assert one.high - one.difference == pytest.approx(T95 * np.ptp(shares) / 2, abs=1e-6)
    assert one.verdict == verdict


@pytest.mark.parametrize(
    ("run", "sent", "why"),
    [
        ("aavg3-epoch-2", 0, "Its learners are in one process: nothing was sent."),
        ("aavg3-epoch-1", 0, "One learner has nobody to send to."),
        ("aavg3-epoch-2", 9, "One seed of aavg3-epoch says nothing about the next."),
        ("aavg1-epoch-2", 9, "There are no runs of aavg3-epoch."),
    ],
)
def test_what_says_nothing_on_communication(tmp_path, run, sent, why):
    logs = [write_log(tmp_path, run, "rgb", [0.5], sent_bytes=[sent])]
    one = findings(logs=logs)["communication at K = -1 is negligible", f"{SHARE}, RGB"]
    assert (one.verdict, one.why) == (UNKNOWN, why)


def test_the_command_writes_a_row_for_each_claim_and_stream(tmp_path):
    files = k_runs(tmp_path, k1=10, k2=25, epoch=38)
    words = outputs(tmp_path, "c")
    run_step("aavg", "claims", *words, "--logs", *files["logs"], "--scores", *files["scores"])
    rows = read_tsv(tmp_path / "c.tsv")
    assert len(rows) == len({(row["claim"], row["measure"], row["worse"]) for row in rows})
    assert len(rows) == 19 + 2 * 3 + 3 + 1  # of each stream, of printed times, of EAMSGD
    assert [row["verdict"] for row in rows].count(REPRODUCED) == 3
    text = (tmp_path / "c.md").read_text()
    assert text.startswith("Claims of paper 003 on our data: 3 reproduced, 1 not reproduced, 25")
    assert WORDS in text
    assert all(name in text for name in STREAM_NAMES.values())
    twice = [write_log(tmp_path, f"ring-k1-{learners}", "rgb", [1]) for learners in (2, 3)]
    with pytest.raises(InputError, match="are of one way"):
        judge_claims(read_run_logs(twice), read_run_scores(files["scores"]), SETTINGS)
