"""Tables 4 and 5 and figure 6 on a tiny store, of one epoch each; the scores of table 5."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.evaluation.detection import pooled_precision
from actionspan.evaluation.recall import average_recall_activitynet
from actionspan.storage.writing import write_json
from actionspan_papers.sbp.table5 import PRINTED, _scores, score_proposals
from papers.sbp.stores import make_store
from papers.steps import run_command, step_rows

SMALL = ["--seeds", "1", "--resamples", "20", "--input-size", "32", "--components", "4"]
SMALL += ["--epochs", "1"]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return make_store(tmp_path_factory.mktemp("store"), training=2, validation=2)


def made(folder, step, store, *words, figure=False):
    own = ["--snippets", store[0], "--annotations", store[1], *SMALL, *words]
    return step_rows(folder, "sbp", step, *own, figure=figure, run=run_command)


def check_interval(row, column):
    value, low, high = (float(row[f"{column}{end}"]) for end in ("", "_low", "_high"))
    assert low <= value <= high


def test_table4_has_both_heads_with_every_training(tmp_path, store):
    rows = made(tmp_path, "table4", store, "--online-ratios", "0.25")
    assert [(row["head"], row["way"], row["keep_ratio"]) for row in rows] == [
        (head, *way)
        for head in ("recurrent", "attention")
        for way in (("frozen", ""), ("full", ""), ("sbp", "0.25"))
    ]
    for row in rows:
        assert 0 < float(row["precision"]) <= 100
        check_interval(row, "precision")
        for end in ("frozen", "full"):
            if row["way"] == end:
                assert row[f"above_{end}"] == ""  # nothing is above itself
            else:
                check_interval(row, f"above_{end}")
    assert [row["published"] for row in rows] == ["55.3", "56.8", "56.7", "56.8", "59.2", "59.1"]


def test_table5_runs_the_pipeline_on_tuned_encoders(tmp_path, store):
    rows = made(tmp_path, "table5", store, "--videos", store[2], "--ratios", "0.5")
    columns = ("way", "keep_ratio", "sampler", "published")
    assert [tuple(row[name] for name in columns) for row in rows] == [
        ("frozen", "", "", "27.84"),
        ("full", "", "", "31.17"),
        ("sbp", "0.5", "uniform_random", "30.46"),
        ("sbp", "0.25", "importance", ""),
    ]
    for row in rows:
        for measure in ("auc", "map"):
            assert 0 <= float(row[measure]) <= 100
            check_interval(row, measure)
    assert rows[0]["auc_above_frozen"] == rows[1]["auc_above_full"] == ""
    assert "| sbp | 0.25 | importance |" in (tmp_path / "table5.md").read_text()


def test_figure6_has_every_sampler_and_step_size(tmp_path, store):
    rows = made(tmp_path, "figure6", store, "--shares", "1.0", "0.1", figure=True)
    samplers = ("uniform_random", "diverse_feature", "diverse_gradient")
    found = {(row["sampler"], row["encoder_share"]) for row in rows}
    assert found == {(sampler, share) for sampler in samplers for share in ("1", "0.1")}
    for row in rows:
        assert (row["above_uniform"] == "") == (row["sampler"] == "uniform_random")
        assert (row["above_first"] == "") == (row["encoder_share"] == "1")
    assert "<svg" in (tmp_path / "figure6.svg").read_text()


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
    # no instance is no value
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
