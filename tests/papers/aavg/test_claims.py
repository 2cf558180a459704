"""Tables and verdicts of paper 003: exact means, intervals by hand, every verdict."""

import math

import numpy as np
import pytest

from actionspan.errors import InputError
from actionspan_papers.aavg import claims
from actionspan_papers.aavg.comparisons import STREAM_NAMES, ExperimentSettings
from actionspan_papers.aavg.published import printed_findings
from actionspan_papers.aavg.readers import read_run_logs, read_run_scores
from actionspan_papers.aavg.table import TWO_STREAM, accuracies, estimate
from actionspan_papers.aavg.times import gain
from papers.aavg.runs import T95, WORDS, named, write_log, write_scores
from papers.steps import NOT, REPRODUCED, UNKNOWN, cells, step_rows

SETTINGS = ExperimentSettings(resamples=200)
ADAPTIVE, BEST, HARMLESS, NEGLIGIBLE, FEWER, SOONER = (
    (key, "RGB") for key in ("batch", "best", "harmless", "negligible", "fewer", "sooner")
)


def seeds_of(runs):
    """Return the name of each seed of each way of training, with what is given for it."""
    return [
        (name, given)
        for run, seeds in runs.items()
        for name, given in zip(named(run.replace("_", "-"), len(seeds)), seeds, strict=True)
    ]


def scores_of(folder, stream="rgb", **runs):
    """Write the scores of ways of training, each seed given by the clips it has right."""
    return [
        write_scores(folder, name, stream, [0.75 if right else 0.25 for right in clips])
        for name, clips in seeds_of(runs)
    ]


def curves(folder, stream, **runs):
    return [write_log(folder, name, stream, values) for name, values in seeds_of(runs)]


def findings(logs=(), scores=()):
    judged = claims.judge_claims(read_run_logs(logs), read_run_scores(scores), SETTINGS)
    return {(one.claim.key, one.claim.measure.rpartition(", ")[2]): one for one in judged}


def level(right, clips=40):
    """Return clips of which so many are right."""
    return [number < right for number in range(clips)]


def levels(*seeds):
    return [level(right) for right in seeds]


def k_runs(folder, **rights):
    """Return logs and scores of AAVG1, so many of 40 clips right for each K."""
    runs = {f"aavg1_{run}_2": levels(right, right) for run, right in rights.items()}
    logs = curves(folder, "rgb", **dict.fromkeys(runs, [[0.5] * 2] * 2))
    return {"logs": logs, "scores": scores_of(folder, **runs)}


def test_both_streams_together_are_the_mean_of_their_probabilities_by_seed(tmp_path):
    streams = {"rgb": [0.9, 0.4, 0.4, 0.6], "flow": [0.2, 0.3, 0.8, 0.45]}
    paths = [write_scores(tmp_path, "aavg1-epoch-2", *each) for each in streams.items()]
    found = accuracies(read_run_scores(paths))
    values = [found["aavg1-epoch", name].values.tolist() for name in (*streams, TWO_STREAM)]
    assert values == [[[100, 0, 0, 100]], [[0, 0, 100, 0]], [[100, 0, 100, 100]]]
    paths = [
        write_scores(tmp_path, "aavg1-epoch-2", "rgb", [0.9, 0.9]),
        write_scores(tmp_path, "aavg1-epoch-2-seed3", "rgb", [0.1, 0.9]),
        write_scores(tmp_path, "aavg1-epoch-2-seed2", "flow", [0.1, 0.1]),
        write_scores(tmp_path, "aavg1-epoch-2-seed3", "flow", [0.8, 0.2]),
    ]
    both = accuracies(read_run_scores(paths))["aavg1-epoch", TWO_STREAM]
    assert (both.seeds, both.values.tolist()) == ([3], [[0, 100]])
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
    found, one, again = (estimate(values[:seeds], SETTINGS) for seeds in (3, 1, 1))
    assert (found.value, found.low, found.high) == (75, one.low, one.high)
    assert found.low < 75 < found.high
    assert one == again


def test_the_table(tmp_path):
    right = (1, 1, 1, 0)
    paths = [
        *scores_of(tmp_path, aavg1_epoch_2=[right, right], aavg3_epoch_2=[(1, 1, 1, 1)] * 2),
        *scores_of(tmp_path, "flow", aavg1_epoch_2=[(0, 0, 0, 0)] * 2, none_k1_1=[right]),
    ]
    rows = step_rows(tmp_path, "aavg", "table", "--resamples", 100, "--scores", *paths)
    assert [row["method"] for row in rows] == ["aavg1", "aavg2", "aavg3", "aavg4"]
    one, two, three, four = rows
    assert (one["seeds"], one["rgb"], one["flow"]) == ("2", "75.00", "0.00")
    assert 0 <= float(one["rgb_low"]) < 75 < float(one["rgb_high"]) <= 100
    assert one["two-stream_published_UCF101"] == "88.3"
    assert one["two-stream_published_HMDB51"] == ""
    assert (two["seeds"], two["rgb"], two["rgb_published_UCF101"]) == ("", "", "83.7")
    assert (three["rgb"], three["rgb_low"], three["rgb_high"]) == ("100.00",) * 3
    assert (four["seeds"], four["rgb"], four["flow"]) == ("", "", "")
    assert four["two-stream_published_HMDB51"] == "67.9"
    blind = write_scores(tmp_path / "blind", "aavg1-epoch-2", "rgb", [])
    text = (tmp_path / "table.md").read_text()
    assert step_rows(tmp_path, "aavg", "table", "--scores", blind)[0]["rgb"] == ""
    assert WORDS in text
    assert "4 validation clips of 2 classes, 25 positions of each" in text
    lines = [line for line in text.splitlines() if line.startswith("| aavg")]
    assert "| 100.00 [100.00, 100.00] |" in lines[2]
    assert lines[3].endswith("| 85.6 | 84.7 | 93.04 | 61.4 | 56.0 | 67.9 |")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"clips": ["clip0", "other"]}, "clips differ from"),
        ({"classes": ["calm", "war"]}, "classes differ from"),
        ({"labels": [1, 0]}, "labels differ from"),
        ({"samples": 5}, "samples differ from"),
        ({"labels": [0, 2]}, "not the scores of a classifier's validation clips"),
    ],
)
def test_other_scores_are_named(tmp_path, changed, message):
    first = write_scores(tmp_path, "aavg1-epoch-2", "rgb", [0.5, 0.6])
    other = write_scores(tmp_path, "aavg1-epoch-2-seed2", "rgb", [0.5, 0.6], **changed)
    with pytest.raises(InputError, match=f"seed2/rgb/scores.json: {message}"):
        read_run_scores([first, other])


def test_not_lower():
    verdicts = {
        REPRODUCED: ((0.5, 2.0), (-0.9, 2.0), (-0.9, 0.0)),
        NOT: ((-0.9, -0.1), (-5.0, -2.0)),
        UNKNOWN: ((-1.0, 2.0), (0.0, 0.0)),
    }
    for verdict, intervals in verdicts.items():
        assert {claims.not_lower(*ends)[0] for ends in intervals} == {verdict}


def test_a_claim_holds_where_the_same_clips_and_seeds_speak_for_it(tmp_path):
    runs = {f"aavg{number}_epoch_2": levels(10, 20, 30) for number in (1, 3)}
    runs["aavg2_epoch_2"] = levels(18, 28, 38)  # 8 clips, whatever the seed
    found = findings(scores=scores_of(tmp_path, **runs))
    one = found[ADAPTIVE]
    assert (one.difference, one.verdict) == (20, REPRODUCED)
    assert (one.claim.better, one.claim.worse) == ("aavg2-epoch", "aavg1-epoch")
    assert one.claim.published == pytest.approx(2.1)
    # the seeds differ by exactly 20 each, so that only clips are in the interval
    by_clip = np.array([[100.0 * (b - a) for a, b in zip(level(20), level(28), strict=True)]] * 3)
    assert one.low == pytest.approx(estimate(by_clip, SETTINGS).low, abs=10)
    other = found["state", "RGB"]
    assert (other.difference, other.verdict) == (-20, NOT)
    missing = found["batch", "flow"]
    assert missing.why == "Runs of aavg2-epoch and aavg1-epoch are missing."


def test_differences_are_of_the_seeds_that_both_have(tmp_path):
    seeds = {"aavg1_epoch_2": levels(10, 20, 0, 40), "aavg2_epoch_2": levels(14, 24)}
    scores = scores_of(tmp_path, **seeds)
    assert findings(scores=scores)[ADAPTIVE].difference == pytest.approx(10)
    one_each = findings(scores=[scores[0], scores[-1]])[ADAPTIVE]
    assert one_each.why == "Fewer than two seeds of both show nothing about the next."
    assert math.isnan(one_each.low)


def test_seeds_that_disagree_and_a_single_clip_leave_a_claim_open(tmp_path):
    scores = scores_of(tmp_path, aavg1_epoch_2=levels(10, 10), aavg2_epoch_2=levels(12, 30))
    found = findings(scores=scores)[ADAPTIVE]
    assert (found.difference, found.verdict) == (pytest.approx(27.5), UNKNOWN)
    assert found.high - found.difference >= T95 * 22.5 - 1e-6
    scores = scores_of(tmp_path / "one", aavg1_epoch_2=[[0]] * 2, aavg2_epoch_2=[[1]] * 2)
    found = findings(scores=scores)[ADAPTIVE]
    assert found.why == "Fewer than two validation clips have no interval over clips."


@pytest.mark.parametrize(
    ("rights", "verdict", "worse", "difference", "harmless"),
    [
        ({"k1": 10, "k2": 25, "k8": 20, "epoch": 38}, REPRODUCED, "k2", 32.5, "k8"),
        ({"k1": 30, "k2": 10, "k8": 39, "epoch": 20}, NOT, "k8", -47.5, "k2"),
    ],
)
def test_k_is_judged_by_the_other_that_speaks_most_against_it(
    tmp_path, rights, verdict, worse, difference, harmless
):
    found = findings(**k_runs(tmp_path, **rights))
    best = found[BEST]
    assert (best.verdict, best.claim.worse) == (verdict, f"aavg1-{worse}")
    assert (best.difference, best.claim.published) == (pytest.approx(difference), None)
    assert (found[HARMLESS].verdict, found[HARMLESS].claim.better) == (verdict, f"aavg1-{harmless}")


def test_one_k_that_is_as_good_or_missing_leaves_it_open(tmp_path):
    best = findings(**k_runs(tmp_path, k1=10, k4=38, epoch=38))[BEST]
    assert (best.verdict, best.claim.worse) == (UNKNOWN, "aavg1-k4")
    assert best.why.startswith("Both are equal in every resample")
    missing = findings(**k_runs(tmp_path / "other", k2=10, k4=38))
    assert missing[BEST].why == "Runs of aavg1-epoch are missing."
    assert missing[HARMLESS].why == "Runs of aavg1-k1 are missing."


def test_the_first_half_of_the_epochs(tmp_path):
    """Of 5 epochs the first 3."""
    runs = {
        "aavg3_epoch_2": [[0.1, 0.2, 0.3, 0.9, 0.9], [0.2, 0.2, 0.2, 0.9, 0.9]],
        "aavg4_epoch_2": [[0.3, 0.4, 0.5, 0.1, 0.1], [0.4, 0.5, 0.6, 0.1, 0.1]],
    }
    found = findings(logs=curves(tmp_path, "flow", **runs))
    one = found["earlier", "flow"]
    half = T95 * 5  # differences of 20 and 30 points
    assert (one.difference, one.low, one.high) == pytest.approx((25, 25 - half, 25 + half))
    assert (one.verdict, one.claim.published) == (UNKNOWN, None)


def test_the_first_quarter_of_the_epochs(tmp_path):
    """Of 8 epochs the first 2; alike in both seeds, so that the interval is a point."""
    late = [0.9] * 6
    joined, alone = ([0.1, 0.2, *late], [0.2, 0.3, *late]), ([0.3, 0.2, *late], [0.4, 0.3, *late])
    logs = curves(tmp_path, "rgb", aavg3_epoch_2=joined, none_k1_1=alone)
    blind = {"aavg3_epoch_2": [[0.5] * 8] * 2, "none_k1_1": [[math.nan] * 8] * 2}
    found = findings(logs=[*logs, *curves(tmp_path, "flow", **blind)])
    one = found["ahead", "RGB"]
    assert (one.difference, one.low, one.verdict) == (pytest.approx(10), one.high, REPRODUCED)
    assert found["ahead", "flow"].why == "Validation clips are missing."


@pytest.mark.parametrize(
    ("shares", "verdict"), [((0.1, 0.1), REPRODUCED), ((0.1, 0.9), UNKNOWN), ((3.0, 3.0), NOT)]
)
def test_negligible_is_less_than_a_percent(tmp_path, shares, verdict):
    logs = []
    for name, share in zip(named("aavg3-epoch-2", 2), shares, strict=True):
        columns = {"seconds": [50.0, 50.0], "communication_seconds": [share, 0.0]}
        logs.append(write_log(tmp_path, name, "rgb", [0.5, 0.5], **columns))
    one = findings(logs=logs)[NEGLIGIBLE]
    assert one.difference == pytest.approx(1 - np.mean(shares))
    assert one.high - one.difference == pytest.approx(T95 * np.ptp(shares) / 2, abs=1e-6)
    assert one.verdict == verdict


@pytest.mark.parametrize(
    ("run", "sent", "why"),
    [
        ("aavg3-epoch-2", 0, "Its learners are in one process: nothing was sent."),
        ("aavg3-epoch-1", 0, "One learner has nobody to send to."),
        ("aavg3-epoch-2", 9, "One seed of aavg3-epoch shows nothing about the next."),
        ("aavg1-epoch-2", 9, "Runs of aavg3-epoch are missing."),
    ],
)
def test_what_says_nothing_on_communication(tmp_path, run, sent, why):
    one = findings(logs=[write_log(tmp_path, run, "rgb", [0.5], sent_bytes=[sent])])[NEGLIGIBLE]
    assert (one.verdict, one.why) == (UNKNOWN, why)


def test_the_command_writes_a_row_for_each_claim_and_stream(tmp_path):
    files = k_runs(tmp_path, k1=10, k2=25, epoch=38)
    words = ["--logs", *files["logs"], "--scores", *files["scores"]]
    rows = step_rows(tmp_path, "aavg", "claims", *words)
    assert len(rows) == len({(row["claim"], row["measure"], row["worse"]) for row in rows})
    # of each stream, of printed times, and of other printed numbers and theorems
    assert len(rows) == 19 + 2 * 3 + 3 + len(printed_findings())
    by_print = [one.verdict for one in printed_findings()]
    assert [row["verdict"] for row in rows].count(REPRODUCED) == 3 + by_print.count(REPRODUCED)
    text = (tmp_path / "claims.md").read_text()
    assert text.startswith("Claims of paper 003 on our data: 8 reproduced, 8 not reproduced, 29")
    assert all(words in text for words in (WORDS, *STREAM_NAMES.values()))
    twice = [write_log(tmp_path, f"ring-k1-{learners}", "rgb", [1]) for learners in (2, 3)]
    with pytest.raises(InputError, match="are of one way"):
        claims.judge_claims(read_run_logs(twice), read_run_scores(files["scores"]), SETTINGS)


# highest accuracy of both: 0.7 after 4 and 3 epochs; 0.9 after 2 and 4
JOINED = [[0.2, 0.5, 0.6, 0.8], [0.2, 0.9, 0.9, 0.9]]
ALONE = [[0.3, 0.6, 0.7, 0.7], [0.1, 0.2, 0.3, 0.9]]
SILENT = {"communication_seconds": [0] * 4, "sent_bytes": [0] * 4}


def timed(folder, joined=JOINED, alone=ALONE, stream="rgb", **columns):
    """Epochs of 4 seconds for two learners and of 10 for one, 12 samples each."""
    columns = {"seconds": [4.0] * 4, "communication_seconds": [0.1] * 4, **columns}
    both = seeds_of({"aavg3_epoch_2": joined})
    logs = [write_log(folder, name, stream, own, **columns) for name, own in both]
    return logs + curves(folder, stream, none_k1_1=alone)


def test_equal_accuracy_is_the_highest_that_both_reach_and_seeds_are_paired(tmp_path):
    files = timed(tmp_path)
    joined, alone = read_run_logs(files).values()
    found = gain(alone, joined)
    assert found.accuracy == pytest.approx([70, 90])
    assert found.samples == pytest.approx([3 / 4, 4 / 2])
    assert found.speedup == pytest.approx([30 / 16, 40 / 8])
    joined, alone = read_run_logs(files[1:]).values()
    assert gain(alone, joined).accuracy == pytest.approx([90])


def test_the_table_of_times_has_ours_and_the_printed(tmp_path):
    scores = write_scores(tmp_path, "aavg3-epoch-2", "rgb", [0.9])
    files = [*timed(tmp_path), *timed(tmp_path, stream="flow", **SILENT)]
    rows = step_rows(tmp_path, "aavg", "times", "--logs", *files, "--scores", scores)
    rgb, flow, *printed = rows
    assert (rgb["way"], rgb["learners"], rgb["seeds"]) == ("aavg3-epoch", "2", "2")
    assert (rgb["accuracy"], rgb["samples"], rgb["speedup"]) == ("80.00", "1.38", "3.44")
    assert rgb["per_learner"] == "1.72"
    assert float(rgb["samples_high"]) == pytest.approx(1.375 + T95 * 0.625, abs=0.01)
    assert (flow["samples"], flow["speedup"]) == ("1.38", "")  # in one process: no time
    # 2067 / 61, 720 / 61 and 2880 / 439
    assert [row["speedup"] for row in printed] == ["33.89", "11.80", "6.56"]
    assert [row["per_learner"] for row in printed] == ["2.12", "0.74", "0.41"]
    assert cells(tmp_path / "times.md")[2][:4] == ["aavg3-epoch", "RGB", "2", "2"]


def test_half_the_epochs_of_half_the_time_are_super_linear(tmp_path):
    found = findings(logs=timed(tmp_path, joined=[JOINED[1]] * 2, alone=[ALONE[1]] * 2))
    assert (found[FEWER].difference, found[FEWER].verdict) == (pytest.approx(1), REPRODUCED)
    assert (found[SOONER].difference, found[SOONER].verdict) == (pytest.approx(1.5), REPRODUCED)
    slow = findings(logs=timed(tmp_path / "slow", joined=[JOINED[0]] * 2, alone=[ALONE[0]] * 2))
    assert slow[FEWER].difference == pytest.approx(-0.25)
    assert slow[SOONER].verdict == NOT  # 30 / 16 by two learners


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"joined": JOINED[:1]}, "One seed of aavg3-epoch and none-k1 shows nothing"),
        ({"joined": []}, "Runs of aavg3-epoch are missing."),
        ({"alone": np.full((2, 4), np.nan)}, "Validation clips are missing."),
        (SILENT, "Its learners are in one proc"),
    ],
)
def test_what_leaves_time_open(tmp_path, changed, why):
    found = findings(logs=timed(tmp_path, **changed))[SOONER]
    assert found.verdict == UNKNOWN
    assert found.why.startswith(why)


def test_the_printed_times_contradict_each_other():
    rows = claims.judge_claims({}, {}, SETTINGS)
    printed = [one for one in rows if "by the times printed" in one.claim.text]
    (eamsgd,) = [one for one in rows if "EAMSGD" in one.claim.text]
    assert [one.verdict for one in printed] == [REPRODUCED, NOT, UNKNOWN]
    assert printed[0].difference == pytest.approx(2067 / 61 / 16 - 1)
    assert printed[1].difference == pytest.approx(720 / 61 / 16 - 1)
    assert "At least 6.6 times" in printed[2].why
    assert "4.9 days" in printed[2].why  # 439 minutes · 16
    assert (eamsgd.verdict, eamsgd.claim.worse) == (UNKNOWN, "EAMSGD")
