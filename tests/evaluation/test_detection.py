"""Mean average precision against a slow oracle, closed forms, its invariants and its traps."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actionspan.evaluation.detection import detection_precision, match_greedily
from actionspan.evaluation.recall import DETECTION_THRESHOLDS, tiou
from evaluation.oracle import literal_average_precision

# Times in sixteenths of a second: sums and differences are exact, so that thresholds are too.
times = st.integers(0, 64).map(lambda ticks: ticks / 16)
segments = st.tuples(times, times).map(lambda pair: tuple(sorted(pair)))
instances = st.lists(segments, max_size=5)
scored = st.lists(
    st.tuples(segments, st.sampled_from([0.0, 0.25, 0.5, 1.0])).map(lambda x: (*x[0], x[1])),
    max_size=12,
)


@st.composite
def problems(draw):
    videos = [f"v_{number}" for number in range(draw(st.integers(1, 4)))]
    truth = {video: draw(instances) for video in videos}
    truth["v_0"] = [*truth["v_0"], (1.0, 3.0)]
    return truth, {video: draw(scored) for video in draw(st.permutations(videos))}


def scores(truth, proposals):
    return detection_precision(truth, proposals).scores()


@settings(max_examples=80)
@given(problems())
def test_equals_the_literal_rule(problem):
    result = detection_precision(*problem)
    expected = [
        literal_average_precision(*problem, threshold) for threshold in DETECTION_THRESHOLDS
    ]
    np.testing.assert_allclose(result.average_precision, expected, atol=1e-12)


def test_equals_the_literal_rule_with_many_proposals_of_crowded_videos():
    generator = np.random.default_rng(0)
    truth, proposals = {}, {}
    for number in range(8):
        truth[f"{number}"] = np.sort(generator.uniform(0, 9, (3 * number, 2)), axis=1)
        rows = np.sort(generator.uniform(0, 9, (120, 2)), axis=1)
        proposals[f"{number}"] = np.column_stack([rows, generator.normal(size=120).round(1)])
    result = detection_precision(truth, proposals)
    expected = [literal_average_precision(truth, proposals, t) for t in DETECTION_THRESHOLDS]
    np.testing.assert_allclose(result.average_precision, expected, atol=1e-12)
    assert 0 < expected[9] < expected[0] < expected[11] < expected[10] < 1


def sorted_precision(truth, proposals):
    """All proposals in memory, sorted at once."""
    lists = {
        video: np.array(sorted(rows, key=lambda row: -row[2]), float).reshape(-1, 3)
        for video, rows in proposals.items()
    }
    wanted = {video: np.array(rows, float).reshape(-1, 2) for video, rows in truth.items()}
    right = np.concatenate(
        [match_greedily(tiou(rows[:, :2], wanted[video]), DETECTION_THRESHOLDS)
         for video, rows in lists.items()]
    )  # fmt: skip
    order = np.argsort(-np.concatenate([rows[:, 2] for rows in lists.values()]), kind="stable")
    values = []
    for column in right[order].T:
        ranks = np.flatnonzero(column) + 1.0
        precision = np.arange(1, len(ranks) + 1) / ranks
        envelope = np.maximum.accumulate(precision[::-1])
        values.append(float(envelope.sum()) / sum(map(len, truth.values())))
    return values


@settings(max_examples=100)
@given(problems())
def test_counting_gives_the_bits_of_sorting(problem):
    assert detection_precision(*problem).average_precision.tolist() == sorted_precision(*problem)


@settings(max_examples=40)
@given(problems())
def test_is_a_share_that_falls_with_the_threshold_and_ignores_the_scale_of_scores(problem):
    truth, proposals = problem
    values = scores(truth, proposals)
    assert all(0 <= value <= 1 for value in values.values())
    scaled = {
        video: [(start, end, score**3 - 2) for start, end, score in rows]
        for video, rows in proposals.items()
    }
    assert scores(truth, scaled) == values


@settings(max_examples=40)
@given(problems())
def test_distinct_scores_make_the_order_of_videos_and_rows_indifferent(problem):
    truth, proposals = problem
    place = iter(range(1000))
    distinct = {
        video: [(start, end, next(place) * 7 % 1009) for start, end, _ in rows]
        for video, rows in proposals.items()
    }
    turned = {video: rows[::-1] for video, rows in reversed(distinct.items())}
    assert scores(truth, distinct) == scores(truth, turned)


@settings(max_examples=40)
@given(problems())
def test_a_last_proposal_never_lowers_it_and_a_first_miss_never_lifts_it(problem):
    truth, proposals = problem
    before = detection_precision(truth, proposals).average_precision
    rows = list(proposals["v_0"])
    last = {**proposals, "v_0": [*rows, (1.0, 3.0, -1.0)]}
    assert (detection_precision(truth, last).average_precision >= before - 1e-12).all()
    first = {**proposals, "v_0": [(7.0, 8.0, 2.0), *rows]}
    assert (detection_precision(truth, first).average_precision <= before + 1e-12).all()


# ---- closed forms and traps ----


def test_perfect_proposals_score_1_and_none_score_0():
    truth = {"a": [(0, 4), (5, 9)], "b": [(1, 2)]}
    perfect = {video: [(*row, 1.0) for row in rows] for video, rows in truth.items()}
    assert set(scores(truth, perfect).values()) == {1.0}
    assert set(scores(truth, {}).values()) == {0.0}


def test_right_wrong_right_of_two_is_five_sixths():
    rows = [(0, 4, 0.9), (20, 21, 0.8), (5, 9, 0.7)]
    # precision 1 up to recall 1/2, then 2/3
    assert scores({"a": [(0, 4), (5, 9)]}, {"a": rows})["mAP@0.95"] == pytest.approx(5 / 6)


def test_precision_is_the_best_at_that_recall_or_further_on():
    truth = {"a": [(0, 4), (5, 9), (10, 14)]}
    rows = [(20, 21, 0.9), (0, 4, 0.8), (5, 9, 0.7), (10, 14, 0.6)]
    # 1/2, 2/3, 3/4 at the three recalls: 3/4 for all of them
    assert scores(truth, {"a": rows})["mAP@0.50"] == pytest.approx(3 / 4)


def test_a_second_proposal_of_one_instance_is_a_false_alarm():
    rows = [(0, 4, 0.9), (0, 4, 0.8), (5, 9, 0.7)]
    assert scores({"a": [(0, 4), (5, 9)]}, {"a": rows})["mAP@0.50"] == pytest.approx(5 / 6)


def test_a_proposal_whose_best_instance_is_taken_gets_the_next_best():
    truth = {"a": [(0.0, 10.0), (0.0, 8.0)]}
    values = scores(truth, {"a": [(0.0, 10.0, 0.9), (0.0, 10.0, 0.8)]})
    assert values["mAP@0.80"] == 1  # 8 of 10 seconds
    assert values["mAP@0.95"] == 0.5


def test_the_highest_tiou_is_matched_first_even_where_that_costs_a_later_match():
    truth = {"a": [(0.0, 10.0), (2.0, 10.0)]}
    # the first takes the second instance (1.0), the next reaches the first with 0.7 alone
    rows = [(2.0, 10.0, 0.9), (3.0, 10.0, 0.8)]
    values = scores(truth, {"a": rows})
    assert values["mAP@0.65"] == 1
    assert values["mAP@0.75"] == 0.5


def test_of_two_instances_with_equal_tiou_the_later_is_matched():
    # the second proposal finds the first instance alone
    tious = np.array([[0.6, 0.6], [0.6, 0.0]])
    assert match_greedily(tious, np.array([0.5]))[:, 0].tolist() == [True, True]
    assert match_greedily(tious[:, ::-1], np.array([0.5]))[:, 0].tolist() == [True, False]


def test_the_list_is_one_over_all_videos():
    truth = {"a": [(0, 4)], "b": [(0, 4)]}
    proposals = {"a": [(0, 4, 0.1)], "b": [(9, 10, 0.9), (0, 4, 0.8)]}
    # wrong, right, right: 2/3 for both
    assert scores(truth, proposals)["mAP@0.50"] == pytest.approx(2 / 3)


def test_equal_scores_keep_the_order_given():
    truth = {"a": [(0, 4)], "b": [(0, 4)]}
    miss, hit = (8, 9, 0.5), (0, 4, 0.5)
    assert scores(truth, {"a": [hit], "b": [miss]})["mAP@0.50"] == 0.5
    assert scores(truth, {"b": [miss], "a": [hit]})["mAP@0.50"] == 0.25


def test_videos_without_an_instance_give_false_alarms_and_foreign_ones_nothing():
    truth = {"a": [(0, 4)], "calm": []}
    proposals = {"a": [(0, 4, 0.5)], "v_calm": [(0, 4, 0.9)], "foreign": [(0, 4, 0.9)] * 50}
    result = detection_precision(truth, proposals)
    assert result.scores()["mAP@0.50"] == 0.5
    assert (result.videos, result.instances) == (2, 1)
    assert (result.proposals, result.ignored_proposals) == (2, 50)


def test_an_instance_of_no_length_stays_in_the_denominator():
    truth = {"a": [(0, 4), (2, 2)]}
    assert scores(truth, {"a": [(0, 4, 1.0), (2, 2, 0.5)]})["mAP@0.30"] == 0.5


def test_scores_are_named_and_averaged_over_the_ten_thresholds():
    values = scores({"a": [(0.0, 10.0)]}, {"a": [(0.0, 6.2, 1.0)]})
    assert [name for name, value in values.items() if value == 1] == [
        *("mAP@0.50", "mAP@0.55", "mAP@0.60", "mAP@0.30", "mAP@0.40")
    ]
    assert len(values) == 13
    assert values["average_mAP"] == pytest.approx(0.3)


def test_bad_rows_are_refused_by_name():
    with pytest.raises(ValueError, match=r"video 'a', proposal 1: \[2, 1\] with score 1: start is"):
        scores({"a": [(0, 1)]}, {"a": [(2, 1, 1)]})
    with pytest.raises(ValueError, match="video 'a', instance 1: .*not finite"):
        scores({"a": [(0, float("inf"))]}, {})
    with pytest.raises(ValueError, match="no instance"):
        scores({"a": []}, {})
