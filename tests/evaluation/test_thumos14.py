"""THUMOS14's protocol against a slow oracle, its invariants and traps, and the real annotations."""

import csv

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from actionspan.evaluation import average_recall_thumos14
from actionspan.evaluation.recall import SHARES, between, to_frames
from evaluation.oracle import literal_at, literal_thumos14

RATES = [24.0, 25.0, 29.97, 30.0]
times = st.integers(0, 48).map(lambda ticks: ticks / 16)
segments = st.tuples(times, times).map(lambda pair: tuple(sorted(pair)))
instances = st.lists(segments, max_size=3)
scored = st.lists(
    st.tuples(segments, st.sampled_from([0.0, 0.25, 0.5, 1.0])).map(lambda x: (*x[0], x[1])),
    max_size=9,
)


@st.composite
def problems(draw):
    videos = [f"video_{number}" for number in range(draw(st.integers(1, 4)))]
    truth = {video: draw(instances) for video in videos}
    truth["video_0"] = [*truth["video_0"], (1.0, 2.0)]
    proposals = {video: draw(scored) for video in draw(st.permutations(videos))}
    proposals["video_0"] = [*proposals["video_0"], (1.0, 2.25, 0.5)]
    if draw(st.booleans()):
        proposals.pop(videos[-1])
        assume("video_0" in proposals)
    return truth, proposals, {video: draw(st.sampled_from(RATES)) for video in videos}


def one_video(rows, truth=((2.0, 5.0),), rate=10.0):
    return average_recall_thumos14({"v": list(truth)}, {"v": rows}, {"v": rate})


def with_misses(count, place, hit=(2.0, 5.0)):
    """Return a list of `count` proposals, the one at `place` (from 1) being the hit."""
    rows = [(7.0, 8.0, -float(number)) for number in range(1, count + 1)]
    rows[place - 1] = (*hit, -float(place))
    return rows


@settings(max_examples=40)
@given(problems(), st.floats(0.01, 12))
def test_equals_the_literal_protocol(problem, number):
    result = average_recall_thumos14(*problem)
    recall, average_numbers = literal_thumos14(*problem)
    np.testing.assert_array_equal(result.recall, recall)
    assert result.average_numbers.tolist() == average_numbers
    np.testing.assert_allclose(result.hits.mean(axis=0), np.mean(recall, axis=0), atol=1e-12)
    expected = literal_at(np.mean(recall, axis=0), result.average_numbers, number)
    assert result.at(number) == (None if expected is None else pytest.approx(expected, abs=1e-12))


def test_equals_the_literal_protocol_with_many_and_uneven_proposals():
    generator = np.random.default_rng(0)
    truth, proposals, fps = {}, {}, {}
    for number, count in enumerate([250, 3, 100, 0, 77]):
        truth[f"{number}"] = np.sort(generator.uniform(0, 9, (1 + number % 3, 2)), axis=1)
        rows = np.sort(generator.uniform(0, 9, (count, 2)), axis=1)
        proposals[f"{number}"] = np.column_stack([rows, generator.normal(size=count)])
        fps[f"{number}"] = RATES[number % 4]
    result = average_recall_thumos14(truth, proposals, fps)
    recall, average_numbers = literal_thumos14(truth, proposals, fps)
    np.testing.assert_array_equal(result.recall, recall)
    assert result.average_numbers[-1] == average_numbers[-1] == 107.5  # of four videos
    assert result.missing_videos == 1
    assert 0 < result.average_recall[-1] < 1


@settings(max_examples=40)
@given(problems(), st.randoms(use_true_random=False))
def test_neither_the_order_of_videos_nor_the_scale_of_scores_matters(problem, random):
    truth, proposals, fps = problem
    shuffled = list(truth)
    random.shuffle(shuffled)
    scaled = {
        video: [(start, end, score**3 - 2) for start, end, score in rows]
        for video, rows in reversed(proposals.items())
    }
    one = average_recall_thumos14(truth, proposals, fps)
    other = average_recall_thumos14({video: truth[video] for video in shuffled}, scaled, fps)
    np.testing.assert_allclose(one.recall, other.recall, atol=1e-12)
    np.testing.assert_array_equal(one.average_numbers, other.average_numbers)


@settings(max_examples=40)
@given(problems())
def test_recall_is_a_share_that_grows_with_the_budget_and_falls_with_the_threshold(problem):
    recall = average_recall_thumos14(*problem).recall
    assert ((recall >= 0) & (recall <= 1)).all()
    assert (np.diff(recall, axis=1) >= 0).all()
    assert (np.diff(recall, axis=0) <= 0).all()


@settings(max_examples=40)
@given(problems())
def test_every_video_twice_is_the_same_score(problem):
    truth, proposals, fps = problem
    twice = [
        {f"{copy}{video}": rows for copy in "ab" for video, rows in part.items()}
        for part in (truth, proposals, fps)
    ]
    one, two = average_recall_thumos14(*problem), average_recall_thumos14(*twice)
    np.testing.assert_allclose(one.average_recall, two.average_recall, atol=1e-12)
    np.testing.assert_allclose(one.average_numbers, two.average_numbers, rtol=1e-12)


@settings(max_examples=40)
@given(problems(), st.integers(0, 3))
def test_a_perfect_best_proposal_in_place_of_the_last_never_lowers_recall(problem, which):
    truth, proposals, fps = problem
    video = list(proposals)[which % len(proposals)]
    rows = sorted(proposals[video], key=lambda row: -row[2])
    assume(rows and truth[video])
    rows = [row for row in rows[:-1] if row[:2] != truth[video][0]]
    proposals = {**proposals, video: [*rows, (7.0, 9.0, -1.0)]}  # a last one that finds nothing
    before = average_recall_thumos14(truth, proposals, fps)
    better = {**proposals, video: [(*truth[video][0], 2.0), *rows]}
    after = average_recall_thumos14(truth, better, fps)
    # the rest moves one place down: only from the point where the budget is the whole list
    # on is nothing lost
    assert (after.recall[:, -1] >= before.recall[:, -1]).all()
    others = [row for row in range(len(before.best_tiou)) if row not in _rows_of(before, video)]
    np.testing.assert_array_equal(after.best_tiou[others], before.best_tiou[others])
    mine = _rows_of(after, video)[0]
    within = (len(better[video]) * SHARES).astype(int) > 0
    np.testing.assert_array_equal(after.best_tiou[mine], within)


def _rows_of(result, video):
    first = np.concatenate([[0], np.cumsum(result.instances)])
    index = result.video_ids.index(video)
    return range(first[index], first[index + 1])


# ---- closed forms and traps ----


def test_frames_are_counted_with_both_ends():
    # frames 0 … 9 in 0 … 19: 10 of 20, which the time alone (0.9 of 1.9 s) would miss
    result = one_video([(0.0, 1.9, 1.0)], truth=[(0.0, 0.9)])
    np.testing.assert_array_equal(result.recall[:, -1], [1] + [0] * 10)
    assert result.best_tiou[0, -1] == 0.5
    assert result.average_recall[-1] == pytest.approx(1 / 11)


def test_frames_are_of_each_videos_own_rate():
    truth = {"slow": [(0.0, 1.0)], "fast": [(0.0, 1.0)]}
    proposals = {video: [(0.0, 2.0, 1.0)] for video in truth}
    result = average_recall_thumos14(truth, proposals, {"slow": 1.0, "fast": 100.0})
    # frames 0, 1 of 0, 1, 2; frames 0 … 100 of 0 … 200
    assert result.best_tiou[:, -1].tolist() == [2 / 3, 101 / 201]


def test_times_become_the_nearest_frame_and_a_tie_the_even_one():
    assert to_frames(np.array([0.04, 0.05, 0.06, 0.15, 0.25]), 10.0).tolist() == [0, 0, 1, 2, 2]
    assert one_video([(2.04, 4.96, 1.0)]).average_recall[-1] == 1


def test_thresholds_reach_1_and_a_frame_beside_misses_there():
    beside = one_video([(2.0, 5.1, 1.0)])  # 31 of 32 frames
    np.testing.assert_array_equal(beside.recall[:, -1], [1] * 10 + [0])
    assert one_video([(2.0, 5.0, 1.0)]).recall[-1, -1] == 1


def test_17_of_20_frames_miss_the_threshold_085_as_in_the_published_evaluator():
    result = one_video([(0.0, 1.6, 1.0)], truth=[(0.0, 1.9)])
    np.testing.assert_array_equal(result.recall[:, -1], [1] * 7 + [0] * 4)


def test_an_instance_of_no_length_is_one_frame():
    assert one_video([(3.0, 3.0, 1.0)], truth=[(3.0, 3.0)]).average_recall[-1] == 1


def test_segments_that_do_not_meet_share_nothing():
    result = one_video([(0.0, 1.9, 1.0), (5.1, 6.0, 1.0)])
    assert result.best_tiou[0, -1] == 0


def test_29_percent_of_100_proposals_are_28():
    result = one_video(with_misses(100, 29))
    assert result.average_recall[28] == 0
    assert result.average_recall[29] == 1


def test_one_percent_of_a_short_list_is_nothing_though_its_average_number_is_not():
    result = one_video(with_misses(50, 1))
    assert result.average_recall[:2].tolist() == [0, 1]
    assert result.average_numbers[:2].tolist() == [0.5, 1.0]


def test_a_list_is_not_cut_to_100_proposals_a_video():
    result = one_video(with_misses(1500, 1500))
    assert result.average_recall[98:].tolist() == [0, 1]
    assert result.average_numbers[-1] == 1500


def test_average_recall_is_read_on_the_line_between_two_percentages():
    result = one_video(with_misses(200, 3))  # 1 % are 2 proposals, 2 % are 4
    assert result.at(2) == 0
    assert result.at(3) == 0.5
    assert result.at(3.5) == 0.75
    assert result.at(4) == 1


def test_outside_the_average_numbers_measured_there_is_no_value():
    result = one_video(with_misses(200, 1))
    assert result.at(1.99) is None
    assert result.at(2) == 1
    assert result.at(200) == 1
    assert result.at(200.01) is None


def test_budgets_are_percentages_of_each_videos_list():
    truth = {"short": [(2.0, 5.0)], "long": [(2.0, 5.0)]}
    proposals = {"short": with_misses(20, 11), "long": with_misses(180, 91)}
    result = average_recall_thumos14(truth, proposals, {"short": 10.0, "long": 10.0})
    assert result.average_numbers[49] == 50
    assert result.at(50) == 0  # 10 and 90
    assert result.average_recall[50] == 0.5  # 51 %: 10 and 91
    assert result.average_recall[54] == 1  # 55 %: 11 and 99


def test_videos_without_proposals_take_no_part():
    truth = {"v": [(2.0, 5.0)], "w": [(2.0, 5.0), (0.0, 1.0)], "x": [(0.0, 1.0)]}
    result = average_recall_thumos14(truth, {"v": with_misses(100, 1), "w": []}, {"v": 10.0})
    assert result.video_ids == ("v",)
    assert result.missing_videos == 2
    assert result.average_recall[-1] == 1
    assert result.average_numbers[-1] == 100


def test_videos_without_instances_and_foreign_videos_change_no_average_number():
    truth = {"v": [(2.0, 5.0)], "calm": []}
    rows = with_misses(100, 1)
    crowd = {"foreign": [(0.0, 1.0, 1.0)] * 500, "calm": rows[:7], "v": rows}
    result = average_recall_thumos14(truth, crowd, {"v": 10.0})
    alone = average_recall_thumos14(truth, {"v": rows}, {"v": 10.0})
    np.testing.assert_array_equal(result.best_tiou, alone.best_tiou)
    np.testing.assert_array_equal(result.average_numbers, alone.average_numbers)
    assert result.ignored_proposals == 507
    assert result.proposals == 100


def test_equal_scores_keep_the_order_given():
    rows = [(7.0, 8.0, 0.5)] * 4 + [(2.0, 5.0, 0.5)] + [(7.0, 8.0, 0.5)] * 95
    result = one_video(rows)
    assert result.average_recall[3:5].tolist() == [0, 1]


def test_ids_match_with_and_without_v():
    result = average_recall_thumos14(
        {"v_a": [(2.0, 5.0)]}, {"a": with_misses(100, 1)}, {"a": 10.0, "other": 0.0}
    )
    assert result.at(1) == 1


def test_no_proposals_at_all_have_no_average_number_and_no_recall():
    for proposals in ({}, {"v": []}, {"other": [(0.0, 1.0, 1.0)]}):
        result = average_recall_thumos14({"v": [(2.0, 5.0)]}, proposals, {})
        assert result.at(50) is None
        assert result.average_recall.shape == result.average_numbers.shape == (0,)
        assert result.best_tiou.shape == (0, 100)


@settings(max_examples=30)
@given(st.integers(2, 12), st.floats(0.02, 99), st.randoms(use_true_random=False))
def test_reading_between_agrees_with_numpy(width, number, random):
    numbers = np.cumsum([random.uniform(0.1, 20) for _ in range(width)])
    curves = np.array([[random.random() for _ in range(width)] for _ in range(3)])
    read = between(curves, numbers, number)
    if not numbers[0] <= number <= numbers[-1]:
        assert read is None
    else:
        expected = [np.interp(number, numbers, curve) for curve in curves]
        np.testing.assert_allclose(read, expected, atol=1e-12)


# ---- bad input ----


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ((3.0, 2.0, 1.0), r"proposal 2: \[3, 2\] with score 1: start is after end"),
        ((float("nan"), 2.0, 1.0), "proposal 2: .*not finite"),
        ((0.0, 1.0, float("inf")), "proposal 2: .*not finite"),
    ],
)
def test_reversed_and_non_finite_rows_are_refused_by_name(row, reason):
    with pytest.raises(ValueError, match=f"video 'v', {reason}"):
        one_video([(0, 1, 1), row])


def test_ground_truth_is_checked_too():
    with pytest.raises(ValueError, match="video 'v', instance 1: .*start is after end"):
        one_video([], truth=[(2, 1)])
    with pytest.raises(ValueError, match="no instance"):
        one_video([], truth=[])


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


# ---- the real annotations ----


@pytest.fixture(scope="module")
def annotated(shared_data):
    """The 213 test videos: (instances in seconds, their frames in the file, fps, durations)."""
    path = shared_data / "thumos14/thumos14_test_groundtruth.csv"
    seconds, frames, fps, durations = {}, {}, {}, {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            video = row["video-name"]
            seconds.setdefault(video, []).append((float(row["t-init"]), float(row["t-end"])))
            frames.setdefault(video, []).append((int(row["f-init"]), int(row["f-end"])))
            fps[video] = float(row["frame-rate"])
            durations[video] = float(row["video-duration"])
    return seconds, frames, fps, durations


def test_the_real_ground_truths_own_frames_are_ours(annotated):
    seconds, frames, fps, _ = annotated
    assert len(seconds) == 213
    assert sum(map(len, seconds.values())) == 3457
    for video, rows in seconds.items():
        np.testing.assert_array_equal(to_frames(np.array(rows), fps[video]), frames[video])


def test_perfect_proposals_reach_1_on_the_real_ground_truth(annotated):
    seconds, _, fps, _ = annotated
    proposals = {video: [(*row, 1.0) for row in rows] for video, rows in seconds.items()}
    result = average_recall_thumos14(seconds, proposals, fps)
    assert result.average_recall[-1] == 1
    assert result.average_numbers[-1] == pytest.approx(3457 / 213)
    assert len(result.video_ids) == 213


def chance_of(instance, duration):
    """Return the chance that a random proposal reaches each threshold, by areas in the plane.

    A proposal is a point (start, end). With centre and length uniform in 0 … d, it falls on any
    area A of the allowed square with the chance A/d². Where it reaches tIoU t, its end lies
    between two bounds that are known for each start.

    Args:
        instance: Length and start.
        duration: d.
    """
    length, first = instance
    last = first + length
    steps = 400
    chances = []
    for threshold in 0.5 + 0.05 * np.arange(10):
        reach = length / threshold
        start, step = np.linspace(last - reach, last - length * threshold, steps, retstep=True)
        before = start < first
        low = np.where(before, first + threshold * (last - start), start + threshold * length)
        high = np.where(before, start + reach, first + (last - start) / threshold)
        low = np.maximum(low, np.maximum(start, -start))
        high = np.minimum(high, np.minimum(start + duration, 2 * duration - start))
        chances.append(np.trapezoid(np.maximum(high - low, 0), dx=step) / duration**2)
    return [*chances, 0.0]  # tIoU 1 is one point


def test_random_proposals_score_what_geometry_says(annotated):
    seconds, frames, fps, durations = annotated
    generator = np.random.default_rng(2)
    truth, rates, proposals = {}, {}, {}
    for copy in range(10):  # each video ten times, for a tenth of the variance
        for video, duration in durations.items():
            centre, length = generator.uniform(0, duration, (2, 1000))
            rows = [centre - length / 2, centre + length / 2, generator.uniform(size=1000)]
            proposals[f"{copy}/{video}"] = np.column_stack(rows)
            truth[f"{copy}/{video}"] = seconds[video]
            rates[f"{copy}/{video}"] = fps[video]
    result = average_recall_thumos14(truth, proposals, rates)
    chances = np.concatenate(
        [
            chance_of(np.array([last + 1 - first, first]) / fps[video], durations[video])
            for video, rows in frames.items()
            for first, last in rows
        ]
    )
    expected = {n: (1 - (1 - chances) ** n).mean() for n in (50, 100, 200, 500, 1000)}
    for number, value in expected.items():
        assert result.at(number) == pytest.approx(value, rel=0.05), number
    assert result.at(9) is None
