"""Average recall of both protocols: slow oracles, invariants, traps, known values, intervals."""

import csv
import json

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from actionspan.evaluation import average_recall_activitynet, average_recall_thumos14
from actionspan.evaluation.files import read_ground_truth
from actionspan.evaluation.recall import contributed, kept_proposals, to_frames
from actionspan.evaluation.records import recall_intervals
from actionspan.evaluation.rows import match_ids
from actionspan.evaluation.settings import EvaluationSettings
from evaluation.oracle import literal_at, literal_auc, literal_recall, literal_thumos14
from tiers import examples

RATES = [24.0, 25.0, 29.97, 30.0]
# Times in sixteenths of a second: sums and differences are exact, so that thresholds are too.
times = st.integers(0, 96).map(lambda ticks: ticks / 16)
segments = st.tuples(times, times).map(lambda pair: tuple(sorted(pair)))
scored = st.tuples(segments, st.sampled_from([0.0, 0.25, 0.5, 1.0])).map(lambda x: (*x[0], x[1]))


@st.composite
def problems(draw):
    """Return instances, proposals and frame rates of a few videos."""
    videos = [f"v_{number}" for number in range(draw(st.integers(1, 5)))]
    truth = {video: draw(st.lists(segments, max_size=3)) for video in videos}
    truth["v_0"] = [*truth["v_0"], (1.0, 3.0)]
    order = draw(st.permutations(videos))
    proposals = {video: draw(st.lists(scored, max_size=12)) for video in order}
    if draw(st.booleans()):
        proposals.pop(videos[-1])
    return truth, proposals, {video: draw(st.sampled_from(RATES)) for video in videos}


def activitynet(truth, proposals, fps=None):
    return average_recall_activitynet(truth, proposals)


def thumos14(truth, proposals, fps=None):
    return average_recall_thumos14(truth, proposals, fps or dict.fromkeys(truth, 10.0))


PROTOCOLS = pytest.mark.parametrize("protocol", [activitynet, thumos14])


def crowded(counts, latest):
    """Return a problem of videos with so many random proposals."""
    generator = np.random.default_rng(0)
    truth, proposals, fps = {}, {}, {}
    for number, count in enumerate(counts):
        truth[f"{number}"] = np.sort(generator.uniform(0, latest, (1 + number % 3, 2)), axis=1)
        rows = np.sort(generator.uniform(0, latest, (count, 2)), axis=1)
        proposals[f"{number}"] = np.column_stack([rows, generator.normal(size=count)])
        fps[f"{number}"] = RATES[number % 4]
    return truth, proposals, fps


def with_misses(count, place, hit=(2.0, 5.0)):
    """Return a list of `count` proposals, the one at `place` (from 1) being the hit."""
    rows = [(7.0, 8.0, -float(number)) for number in range(1, count + 1)]
    rows[place - 1] = (*hit, -float(place))
    return rows


def assert_literal_activitynet(truth, proposals):
    result = average_recall_activitynet(truth, proposals)
    expected = literal_recall(truth, proposals)
    np.testing.assert_array_equal(result.recall, expected)
    np.testing.assert_allclose(result.hits.mean(axis=0), np.mean(expected, axis=0), atol=1e-12)
    assert result.auc == pytest.approx(literal_auc(expected), abs=1e-9)
    return result


def assert_literal_thumos14(truth, proposals, fps, number):
    result = average_recall_thumos14(truth, proposals, fps)
    recall, average_numbers = literal_thumos14(truth, proposals, fps)
    np.testing.assert_array_equal(result.recall, recall)
    assert result.average_numbers.tolist() == average_numbers
    np.testing.assert_allclose(result.hits.mean(axis=0), np.mean(recall, axis=0), atol=1e-12)
    expected = literal_at(np.mean(recall, axis=0), result.average_numbers, number)
    assert result.at(number) == (None if expected is None else pytest.approx(expected, abs=1e-12))
    return result


@examples(60, first=20)
@given(problems(), st.floats(0.01, 12))
def test_both_equal_the_literal_protocol(problem, number):
    truth, proposals, fps = problem
    assert_literal_activitynet(truth, proposals)
    assume(any(len(truth[video]) for video in truth if proposals.get(video)))
    assert_literal_thumos14(truth, proposals, fps, number)


def test_both_equal_the_literal_protocol_with_many_and_uneven_proposals():
    truth, proposals, fps = crowded([250, 3, 100, 0, 77, 180], 60)
    assert assert_literal_activitynet(truth, proposals).auc > 0
    result = assert_literal_thumos14(*crowded([250, 3, 100, 0, 77], 9), 60.0)
    assert result.average_numbers[-1] == 107.5  # of four videos
    assert result.missing_videos == 1
    assert 0 < result.average_recall[-1] < 1


@PROTOCOLS
@settings(max_examples=40)
@given(problem=problems(), random=st.randoms(use_true_random=False))
def test_only_the_order_of_scores_counts_and_foreign_videos_do_not(protocol, problem, random):
    truth, proposals, fps = problem
    ranked = {  # no two scores of a video are equal
        video: [(start, end, 1 / (rank + 1)) for rank, (start, end, _) in enumerate(rows)]
        for video, rows in proposals.items()
    }
    scaled = {
        video: [(start, end, score**3 - 2) for start, end, score in random.sample(rows, len(rows))]
        for video, rows in reversed(ranked.items())
    }
    foreign = {"w_0": [(0.0, 9.0, 5.0)] * random.randrange(300)}
    one, other = protocol(truth, ranked, fps), protocol(truth, {**foreign, **scaled}, fps)
    np.testing.assert_array_equal(one.best_tiou, other.best_tiou)
    assert other.ignored_proposals == one.ignored_proposals + len(foreign["w_0"])


# ---- traps of both protocols ----


@pytest.mark.parametrize(
    ("given", "kept", "budgets"),
    [
        # 29 percent of 100 are 28
        ([100, 100], [100, 100], {28: [28, 28], 27: [28, 28], 99: [100, 100]}),
        # 161 · (200 / 322) is just below 100, and 161 · 200 / 322 would be 100
        ([161, 161], [99, 99], {}),
        # 29 / 100 · (200 / 116) · 16 is just below 8, and 29 · (200 / 116) / 100 · 16 would be 8
        ([16, 100], [16, 100], {28: [7, 49]}),
        ([5, 100], [5, 100], {20: [1, 40]}),
        # shares of each list, not the first k
        ([20, 180], [20, 180], {49: [10, 90]}),
        # cut to 100 proposals a video on average: int(300 · 300/401) …
        ([300, 100, 1], [224, 74, 0], {99: [224, 74, 0]}),
    ],
)
def test_budgets_round_where_activitynets_protocol_rounds(given, kept, budgets):
    found, shares = kept_proposals(np.array(given))
    by_number = contributed(found[:, None], shares)  # at AN = 1 … 100
    assert found.tolist() == kept
    assert {place: by_number[:, place].tolist() for place in budgets} == budgets


def test_a_perfect_set_scores_99_and_a_missing_video_finds_nothing():
    truth = {f"v_{number}": [(2.0, 5.0)] for number in range(4)}
    proposals = {video: with_misses(100, 1) for video in truth}
    result = average_recall_activitynet(truth, proposals)
    assert result.auc == pytest.approx(99.0, abs=1e-12)
    assert result.at(1) == 1
    bare = {video.removeprefix("v_"): rows for video, rows in proposals.items()}
    assert average_recall_activitynet(truth, bare).auc == pytest.approx(99.0)
    calm = average_recall_activitynet({"calm": [], **truth}, {"calm": [(0, 1, 1)], **proposals})
    assert calm.video_ids == tuple(truth)
    assert calm.ignored_proposals == 1
    del proposals["v_3"]
    less = average_recall_activitynet(truth, proposals)
    assert (less.at(100), less.missing_videos) == (0.75, 1)
    assert average_recall_activitynet(truth, {}).auc == 0


def test_ids_match_with_and_without_v_and_exact_ones_first():
    for given_, truth, expected in (
        (["abc", "v_def", "x"], ["v_abc", "def"], {"abc": "v_abc", "v_def": "def"}),
        (["v_abc", "abc"], ["abc", "v_abc"], {"v_abc": "v_abc", "abc": "abc"}),
        (["v_x"], ["v_v_x"], {"v_x": "v_v_x"}),
        # a data set may hold two videos of these names, one of them in another subset
        (["abc", "v_abc"], ["v_abc"], {"v_abc": "v_abc"}),
        (["v_abc", "abc"], ["v_abc"], {"v_abc": "v_abc"}),
        (["abc", "v_abc"], ["abc"], {"abc": "abc"}),
        (["v_abc", "abc"], ["abc"], {"abc": "abc"}),
    ):
        assert match_ids(dict.fromkeys(given_, 0), dict.fromkeys(truth, 0)) == expected
    with pytest.raises(ValueError, match="'abc' and 'v_v_abc' mean one video"):
        match_ids({"abc": 0, "v_v_abc": 0}, {"v_abc": 0})
    bare = average_recall_thumos14(
        {"v_a": [(2.0, 5.0)]}, {"a": with_misses(100, 1)}, {"a": 10.0, "other": 0.0}
    )
    assert bare.at(1) == 1


@PROTOCOLS
@pytest.mark.parametrize(
    ("truth", "proposals", "reason"),
    [
        ([(0, 1)], [(0, 1, 1), (3, 2, 1)], r"proposal 2: \[3, 2\] .* 1: start is after end"),
        ([(0, 1)], [(0, 1, 1), (float("nan"), 2, 1)], "proposal 2: .*not finite"),
        ([(0, 1)], [(0, 1, 1), (0, float("inf"), 1)], "proposal 2: .*not finite"),
        ([(0, 1)], [(0, 1, 1), (0, 1, float("nan"))], "proposal 2: .*not finite"),
        ([(0, 1)], [(0, 1)], r"proposals of shape \(1, 2\), not \(N, 3\)"),
        ([(2, 1)], [], "instance 1: .*start is after end"),
        ([], [], None),
    ],
)
def test_wrong_rows_are_refused_by_name(protocol, truth, proposals, reason):
    with pytest.raises(ValueError, match=f"video 'a', {reason}" if reason else "no instance"):
        protocol({"a": truth}, {"a": proposals})


# ---- traps of THUMOS14's protocol ----


@pytest.mark.parametrize(
    ("instance", "proposal", "reached"),
    [
        # frames 0 … 9 in 0 … 19: 10 of 20, which the time alone (0.9 of 1.9 s) would miss
        ((0.0, 0.9), (0.0, 1.9), 1),
        # 17 of 20 frames miss the threshold 0.85, as in the published evaluator
        ((0.0, 1.9), (0.0, 1.6), 7),
        ((2.0, 5.0), (2.04, 4.96), 11),  # times become the nearest frame; thresholds reach 1
        ((3.0, 3.0), (3.0, 3.0), 11),  # an instance of no length is one frame
    ],
)
def test_frames_are_counted_with_both_ends(instance, proposal, reached):
    result = thumos14({"v": [instance]}, {"v": [(*proposal, 1.0)]})
    np.testing.assert_array_equal(result.recall[:, -1], [1] * reached + [0] * (11 - reached))


def test_videos_without_proposals_take_no_part_and_calm_and_foreign_ones_change_nothing():
    truth = {"v": [(2.0, 5.0)], "w": [(2.0, 5.0), (0.0, 1.0)], "x": [(0.0, 1.0)], "calm": []}
    rows = with_misses(100, 1)
    crowd = {"foreign": [(0.0, 1.0, 1.0)] * 500, "calm": rows[:7], "v": rows, "w": []}
    result = average_recall_thumos14(truth, crowd, {"v": 10.0})
    assert (result.video_ids, result.missing_videos) == (("v",), 2)
    assert (result.average_recall[-1], result.average_numbers[-1]) == (1, 100)
    assert (result.ignored_proposals, result.proposals) == (507, 100)
    for proposals in ({}, {"v": []}, {"other": [(0.0, 1.0, 1.0)]}):
        nothing = average_recall_thumos14({"v": [(2.0, 5.0)]}, proposals, {})
        assert nothing.at(50) is None
        assert nothing.average_recall.shape == nothing.average_numbers.shape == (0,)
        assert nothing.best_tiou.shape == (0, 100)


@pytest.mark.parametrize(
    ("fps", "reason"),
    [
        ({}, "is not known"),
        ({"w": 25.0}, "is not known"),
        ({"v": 0.0}, "is 0.0; a number above 0 is needed"),
        ({"v": float("nan")}, "is nan; a number above 0"),
        ({"v": float("inf")}, "is inf; a number above 0"),
    ],
)
def test_a_video_without_a_frame_rate_is_named(fps, reason):
    with pytest.raises(ValueError, match=f"video 'v': its frame rate {reason}"):
        average_recall_thumos14({"v": [(0, 1)], "u": [(0, 1)]}, {"v": [(0, 1, 1)]}, fps)


@pytest.mark.full
def test_uniform_random_proposals_on_activitynet_score_what_is_published(shared_data):
    path = shared_data / "activitynet/anet_anno_action.json"
    truth = read_ground_truth(path, "validation")
    entries = json.loads(path.read_text())
    generator, proposals = np.random.default_rng(3), {}
    for video in truth:  # centre and length uniform in 0 … duration
        centre, length = generator.uniform(0, entries[video]["duration_second"], (2, 100))
        rows = [centre - length / 2, centre + length / 2, generator.uniform(size=100)]
        proposals[video.removeprefix("v_")] = np.column_stack(rows)
    result = average_recall_activitynet(truth, proposals)
    assert (len(result.video_ids), result.instances.sum()) == (4728, 7293)
    assert result.auc == pytest.approx(45.0, abs=0.2)
    assert result.at(100) == pytest.approx(0.563, abs=0.004)


def test_the_real_ground_truth_has_our_frames_and_perfect_proposals_reach_1(shared_data):
    path = shared_data / "thumos14/thumos14_test_groundtruth.csv"
    seconds, frames, fps = {}, {}, {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            video = row["video-name"]
            seconds.setdefault(video, []).append((float(row["t-init"]), float(row["t-end"])))
            frames.setdefault(video, []).append((int(row["f-init"]), int(row["f-end"])))
            fps[video] = float(row["frame-rate"])
    for video, rows in seconds.items():
        np.testing.assert_array_equal(to_frames(np.array(rows), fps[video]), frames[video])
    proposals = {video: [(*row, 1.0) for row in rows] for video, rows in seconds.items()}
    result = average_recall_thumos14(seconds, proposals, fps)
    assert result.average_recall[-1] == 1
    assert result.average_numbers[-1] == pytest.approx(3457 / 213)
    assert len(result.video_ids) == 213


def test_intervals_equal_scoring_each_resample_by_the_whole_protocol():
    truth, proposals, _ = crowded([100] * 12, 30)
    generator = np.random.default_rng(5)
    ids, resampled = list(truth), []
    for _ in range(25):
        drawn = list(enumerate(ids[index] for index in generator.integers(12, size=12)))
        some = [{place: each[name] for place, name in drawn} for each in (truth, proposals)]
        resampled.append(average_recall_activitynet(*some))
    result = average_recall_activitynet(truth, proposals)
    intervals = recall_intervals(result, EvaluationSettings(resamples=25, confidence=0.8, seed=5))
    for interval, values in (
        (intervals.auc, [each.auc for each in resampled]),
        (intervals.average_recall, [each.average_recall for each in resampled]),
        (intervals.recall, [each.recall[:, -1] for each in resampled]),
    ):
        expected = np.quantile(values, [0.1, 0.9], axis=0)
        np.testing.assert_allclose(interval, expected, rtol=0, atol=1e-9)
