"""The protocol against a slow oracle, its invariants, its traps, and its known values."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actionspan.evaluation import average_recall_activitynet
from actionspan.evaluation.files import read_ground_truth
from actionspan.evaluation.recall import contributed, kept_proposals
from actionspan.evaluation.rows import match_ids
from evaluation.oracle import literal_auc, literal_recall

# Times in sixteenths of a second: sums and differences are exact, so that thresholds are too.
times = st.integers(0, 160).map(lambda ticks: ticks / 16)
segments = st.tuples(times, times).map(lambda pair: tuple(sorted(pair)))
instances = st.lists(segments, max_size=3)
scored = st.lists(
    st.tuples(segments, st.sampled_from([0.0, 0.25, 0.5, 1.0])).map(lambda x: (*x[0], x[1])),
    max_size=12,
)


@st.composite
def problems(draw):
    videos = [f"v_{number}" for number in range(draw(st.integers(1, 5)))]
    truth = {video: draw(instances) for video in videos}
    truth["v_0"] = [*truth["v_0"], (1.0, 3.0)]
    proposals = {video: draw(scored) for video in draw(st.permutations(videos))}
    if draw(st.booleans()):
        proposals.pop(videos[-1])
    return truth, proposals


def proposal_budgets(given):
    """Return how many proposals each video keeps, and contributes at AN = 1 … 100."""
    kept, shares = kept_proposals(given)
    return kept, contributed(kept[:, None], shares)


def perfect_set(videos, rest):
    """One instance a video; the perfect proposal first, then others that miss it."""
    truth = {f"v_{number}": [(2.0, 5.0)] for number in range(videos)}
    miss = [(7.0, 8.0, 0.1)] * rest
    return truth, {video: [(2.0, 5.0, 0.9), *miss] for video in truth}


@settings(max_examples=60)
@given(problems())
def test_equals_the_literal_protocol(problem):
    truth, proposals = problem
    result = average_recall_activitynet(truth, proposals)
    expected = literal_recall(truth, proposals)
    np.testing.assert_array_equal(result.recall, expected)
    np.testing.assert_allclose(result.hits.mean(axis=0), np.mean(expected, axis=0), atol=1e-12)
    assert result.auc == pytest.approx(literal_auc(expected), abs=1e-9)


def test_equals_the_literal_protocol_with_many_and_uneven_proposals():
    generator = np.random.default_rng(0)
    truth, proposals = {}, {}
    for number, count in enumerate([250, 3, 100, 0, 77, 180]):
        truth[f"{number}"] = np.sort(generator.uniform(0, 60, (1 + number % 3, 2)), axis=1)
        rows = np.sort(generator.uniform(0, 60, (count, 2)), axis=1)
        proposals[f"{number}"] = np.column_stack([rows, generator.normal(size=count)])
    result = average_recall_activitynet(truth, proposals)
    expected = literal_recall(truth, proposals)
    np.testing.assert_array_equal(result.recall, expected)
    assert 0 < result.auc == pytest.approx(literal_auc(expected), abs=1e-9)


@settings(max_examples=40)
@given(problems(), st.randoms(use_true_random=False))
def test_neither_the_order_of_videos_nor_the_scale_of_scores_matters(problem, random):
    truth, proposals = problem
    shuffled = list(truth)
    random.shuffle(shuffled)
    scaled = {
        video: [(start, end, 3 * score - 2) for start, end, score in rows]
        for video, rows in reversed(proposals.items())
    }
    one = average_recall_activitynet(truth, proposals)
    other = average_recall_activitynet({video: truth[video] for video in shuffled}, scaled)
    np.testing.assert_allclose(one.recall, other.recall, atol=1e-12)


@settings(max_examples=40)
@given(problems())
def test_recall_grows_with_the_budget_and_falls_with_the_threshold(problem):
    recall = average_recall_activitynet(*problem).recall
    assert (np.diff(recall, axis=1) >= 0).all()
    assert (np.diff(recall, axis=0) <= 0).all()


@settings(max_examples=40)
@given(problems(), st.integers(0, 4))
def test_a_perfect_proposal_in_the_first_place_finds_its_instance_at_every_budget(problem, which):
    truth, proposals = problem
    video = list(truth)[which % len(truth)]
    rows = list(proposals.get(video, ()))
    long_enough = [instance for instance in truth[video] if instance[0] < instance[1]]
    if not rows or not long_enough:
        return
    before = average_recall_activitynet(truth, proposals)
    first = max(range(len(rows)), key=lambda row: rows[row][2])
    rows[first] = (*long_enough[0], 2.0)  # as many proposals as before: the budgets stay
    after = average_recall_activitynet(truth, {**proposals, video: rows})
    lost = len(truth[video]) - 1  # what the replaced proposal may have found beside
    if lost == 0:
        assert (after.recall >= before.recall).all()
    row = sum(len(truth[name]) for name in list(truth)[: list(truth).index(video)])
    row += truth[video].index(long_enough[0])
    budgets = proposal_budgets(
        np.array([len(proposals.get(name, ())) for name in truth if truth[name]])
    )[1]
    contributes = budgets[[name for name in truth if truth[name]].index(video)] > 0
    assert (after.best_tiou[row] == contributes).all()


@settings(max_examples=40)
@given(problems(), st.randoms(use_true_random=False))
def test_neither_the_order_of_unequal_scores_nor_foreign_videos_matter(problem, random):
    truth, proposals = problem
    ranked = {  # no two scores of a video are equal
        video: [(start, end, 1 / (rank + 1)) for rank, (start, end, _) in enumerate(rows)]
        for video, rows in proposals.items()
    }
    shuffled = {video: random.sample(rows, len(rows)) for video, rows in ranked.items()}
    foreign = {"w_0": [(0.0, 9.0, 5.0)] * random.randrange(300)}
    one = average_recall_activitynet(truth, ranked)
    other = average_recall_activitynet(truth, {**foreign, **shuffled})
    np.testing.assert_array_equal(one.best_tiou, other.best_tiou)
    assert other.ignored_proposals == one.ignored_proposals + len(foreign["w_0"])


@settings(max_examples=60)
@given(problems(), st.integers(0, 4))
def test_a_perfect_proposal_in_place_of_the_worst_never_lowers_recall(problem, which):
    # of one instance a video: beside others, a proposal that drops out may have found two
    truth = {video: instances[-1:] for video, instances in problem[0].items() if instances}
    proposals = {video: rows for video, rows in problem[1].items() if rows and video in truth}
    if not proposals:
        return
    video = list(proposals)[which % len(proposals)]
    rows = sorted(proposals[video], key=lambda row: -row[2])
    better = [(*truth[video][0], 2.0), *rows[:-1]]
    before = average_recall_activitynet(truth, proposals)
    after = average_recall_activitynet(truth, {**proposals, video: better})
    assert (after.best_tiou >= before.best_tiou).all()
    assert (after.recall >= before.recall).all()
    assert after.auc >= before.auc - 1e-9


# ---- traps ----


def test_budgets_truncate_29_percent_of_100_to_28():
    kept, budgets = proposal_budgets(np.array([100, 100]))
    assert kept.tolist() == [100, 100]
    assert budgets[0, 28] == 28  # AN = 29
    assert budgets[0, 27] == 28
    assert budgets[0, 99] == 100


def test_budgets_round_where_the_protocol_rounds():
    """161 · (200 / 322) is just below 100, and so is 29 / 100 · (200 / 116) · 16 below 8."""
    kept, _ = proposal_budgets(np.array([161, 161]))
    assert kept.tolist() == [99, 99]  # 161 · 200 / 322 would be 100
    kept, budgets = proposal_budgets(np.array([16, 100]))
    assert kept.tolist() == [16, 100]
    assert budgets[0, 28] == 7  # 29 · (200 / 116) / 100 · 16 would be 8
    kept, budgets = proposal_budgets(np.array([5, 100]))
    assert budgets[0, 20] == 1


def test_budgets_are_shares_of_each_list_not_the_first_k():
    kept, budgets = proposal_budgets(np.array([20, 180]))
    assert kept.tolist() == [20, 180]
    assert budgets[:, 49].tolist() == [10, 90]


def test_a_longer_file_is_cut_to_100_proposals_a_video_on_average():
    kept, budgets = proposal_budgets(np.array([300, 100, 1]))
    assert kept.tolist() == [224, 74, 0]  # int(300 · 300/401) …
    assert (budgets[:, 99] <= kept).all()


def test_a_perfect_set_scores_99():
    result = average_recall_activitynet(*perfect_set(5, 99))
    assert result.auc == pytest.approx(99.0, abs=1e-12)
    assert result.at(1) == 1


def test_a_video_missing_from_the_file_misses_its_instances():
    truth, proposals = perfect_set(4, 99)
    del proposals["v_3"]
    result = average_recall_activitynet(truth, proposals)
    assert result.at(100) == 0.75
    assert result.missing_videos == 1


def test_proposals_of_other_videos_do_not_lower_the_budgets():
    truth, proposals = perfect_set(3, 99)
    alone = average_recall_activitynet(truth, proposals)
    crowd = {f"other_{number}": [(0.0, 1.0, 1.0)] * 500 for number in range(20)}
    result = average_recall_activitynet(truth, {**crowd, **proposals})
    np.testing.assert_array_equal(result.best_tiou, alone.best_tiou)
    assert result.ignored_proposals == 10_000


def test_videos_without_an_instance_are_no_part_of_the_protocol():
    truth, proposals = perfect_set(3, 99)
    proposals["calm"] = [(0.0, 1.0, 0.5)] * 700
    with_calm = average_recall_activitynet({"calm": [], **truth}, proposals)
    assert with_calm.video_ids == tuple(truth)
    assert with_calm.auc == pytest.approx(99.0, abs=1e-12)


def test_an_instance_of_no_length_stays_in_the_denominator():
    truth, proposals = perfect_set(1, 99)
    truth["v_0"].append((4.0, 4.0))
    proposals["v_0"][1] = (4.0, 4.0, 0.8)
    assert average_recall_activitynet(truth, proposals).at(100) == 0.5


def test_equal_scores_keep_the_order_of_the_file():
    truth = {"v": [(2.0, 5.0)]}
    rows = [(7.0, 8.0, 0.5)] * 4 + [(2.0, 5.0, 0.5)] + [(7.0, 8.0, 0.5)] * 95
    result = average_recall_activitynet(truth, {"v": rows})
    assert result.at(4) == 0
    assert result.at(5) == 1


def test_ids_match_with_and_without_v_and_exact_ones_first():
    assert match_ids({"abc": 0, "v_def": 0, "x": 0}, {"v_abc": 0, "def": 0}) == {
        "abc": "v_abc",
        "v_def": "def",
    }
    assert match_ids({"v_abc": 0, "abc": 0}, {"abc": 0, "v_abc": 0}) == {
        "v_abc": "v_abc",
        "abc": "abc",
    }
    assert match_ids({"v_x": 0}, {"v_v_x": 0}) == {"v_x": "v_v_x"}
    with pytest.raises(ValueError, match="'abc' and 'v_v_abc' mean one video"):
        match_ids({"abc": 0, "v_v_abc": 0}, {"v_abc": 0})


@pytest.mark.parametrize("order", [("abc", "v_abc"), ("v_abc", "abc")])
def test_an_id_that_is_there_itself_is_no_other_ids(order):
    # a data set may hold two videos of these names, one of them in another subset
    given = dict.fromkeys(order, 0)
    assert match_ids(given, {"v_abc": 0}) == {"v_abc": "v_abc"}
    assert match_ids(given, {"abc": 0}) == {"abc": "abc"}


def test_ids_without_v_score_the_same():
    truth, proposals = perfect_set(3, 99)
    bare = {video.removeprefix("v_"): rows for video, rows in proposals.items()}
    assert average_recall_activitynet(truth, bare).auc == pytest.approx(99.0)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ((3.0, 2.0, 1.0), r"proposal 2: \[3, 2\] with score 1: start is after end"),
        ((float("nan"), 2.0, 1.0), "proposal 2: .*not finite"),
        ((0.0, float("inf"), 1.0), "proposal 2: .*not finite"),
        ((0.0, 1.0, float("nan")), "proposal 2: .*not finite"),
    ],
)
def test_reversed_and_non_finite_rows_are_refused_by_name(row, reason):
    with pytest.raises(ValueError, match=f"video 'a', {reason}"):
        average_recall_activitynet({"a": [(0, 1)]}, {"a": [(0, 1, 1), row]})


def test_ground_truth_is_checked_too():
    with pytest.raises(ValueError, match="video 'a', instance 1: .*start is after end"):
        average_recall_activitynet({"a": [(2, 1)]}, {})
    with pytest.raises(ValueError, match="no instance"):
        average_recall_activitynet({"a": []}, {})
    with pytest.raises(ValueError, match=r"shape \(1, 2\), not \(N, 3\)"):
        average_recall_activitynet({"a": [(0, 1)]}, {"a": [(0, 1)]})


def test_no_proposals_at_all_score_nothing():
    assert average_recall_activitynet({"a": [(0, 1)]}, {}).auc == 0


# ---- known values on the real annotations ----


def test_uniform_random_proposals_on_activitynet_score_what_is_published(shared_data):
    path = shared_data / "activitynet/anet_anno_action.json"
    truth = read_ground_truth(path, "validation")
    entries = json.loads(path.read_text())
    generator = np.random.default_rng(3)
    proposals = {}
    for video in truth:
        duration = entries[video]["duration_second"]
        centre, length = generator.uniform(0, duration, (2, 100))
        proposals[video.removeprefix("v_")] = np.column_stack(
            [centre - length / 2, centre + length / 2, generator.uniform(size=100)]
        )
    result = average_recall_activitynet(truth, proposals)
    assert len(result.video_ids) == 4728
    assert result.instances.sum() == 7293
    assert result.auc == pytest.approx(45.0, abs=0.2)
    assert result.at(100) == pytest.approx(0.563, abs=0.004)
