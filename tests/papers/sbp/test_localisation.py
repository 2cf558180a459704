import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.evaluation.detection import pooled_precision
from actionspan.evaluation.recall import average_recall_activitynet
from actionspan.files.storage import write_json
from actionspan_papers.sbp.table5 import PRINTED, _scores, score_proposals
from papers.sbp.stores import make_store

TRUTH = {
    "a": np.array([[1.0, 4.0], [6.0, 9.0]]),
    "b": np.array([[2.0, 3.0]]),
    "c": np.zeros((0, 2)),
}


def proposals(seed):
    random = np.random.default_rng(seed)
    given = {}
    for name in ("a", "b", "c"):
        starts = random.uniform(0, 8, 12)
        rows = np.stack([starts, starts + random.uniform(0.5, 4, 12), random.uniform(size=12)], 1)
        given[name] = rows[np.argsort(-rows[:, 2])]
    return given


@given(seed=st.integers(0, 100))
def test_precision_is_the_evaluator_s_and_a_video_that_is_drawn_twice_counts_as_two(seed):
    made = proposals(seed)
    scores = _scores(TRUTH, made, {})
    twice = {"a": "a", "c": "c", "d": "a"}
    for counts, names in (((1, 1, 1), {name: name for name in TRUTH}), ((2, 0, 1), twice)):
        truth, found = ({new: of[old] for new, old in names.items()} for of in (TRUTH, made))
        wanted = pooled_precision(truth, found)[PRINTED].mean()
        assert scores.precision(np.array(counts, dtype=float)) == pytest.approx(wanted)


def test_no_instance_is_no_value():
    scores = _scores(TRUTH, proposals(1), {})
    assert np.isnan(scores.precision(np.array([0.0, 0.0, 3.0])))
    assert np.isnan(scores.auc(np.array([0.0, 0.0, 3.0])))


def test_auc_is_the_evaluator_s(tmp_path):
    _, annotations, _ = make_store(tmp_path, training=1, validation=3)
    random = np.random.default_rng(2)
    results, given, truth = {}, {}, {}
    for number in range(1, 4):
        starts = np.sort(random.uniform(0, 3, 4))
        rows = np.stack([starts, starts + 2, np.linspace(0.9, 0.1, 4)], 1)
        name = f"validation_{number}"
        given[name] = rows
        results[name] = [{"segment": row[:2].tolist(), "score": row[2]} for row in rows]
        first = (2 + number % 3) * 0.5
        truth[name] = np.array([[first, first + 2]])
    path = tmp_path / "proposals.json"
    write_json(path, {"version": "", "results": results, "external_data": {}})
    scores, once = score_proposals(annotations, path), np.ones(3)
    wanted = average_recall_activitynet(truth, given).auc
    assert 100 * scores.auc(once) == pytest.approx(wanted)
    precision = pooled_precision(truth, given)[PRINTED].mean()
    assert scores.precision(once) == pytest.approx(precision)
