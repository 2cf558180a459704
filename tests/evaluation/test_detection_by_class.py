"""Mean average precision over classes: a slow oracle, closed forms, the rules of the classes."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actionspan.cli import main
from actionspan.evaluation import detection_precision, detection_precision_by_class
from actionspan.evaluation.recall import DETECTION_THRESHOLDS
from evaluation.oracle import literal_average_precision

# Times in sixteenths of a second: sums and differences are exact, so that thresholds are too.
times = st.integers(0, 64).map(lambda ticks: ticks / 16)
segments = st.tuples(times, times).map(lambda pair: tuple(sorted(pair)))
labels = st.sampled_from(["run", "sit", "wave"])
instances = st.lists(st.tuples(segments, labels).map(lambda x: (*x[0], x[1])), max_size=5)
values = st.sampled_from([0.0, 0.25, 0.5, 1.0])
rows = st.lists(st.tuples(segments, values, labels).map(lambda x: (*x[0], *x[1:])), max_size=12)


@st.composite
def problems(draw):
    videos = [f"v_{number}" for number in range(draw(st.integers(1, 4)))]
    truth = {video: draw(instances) for video in videos}
    truth["v_0"] = [*truth["v_0"], (1.0, 3.0, "sit")]
    return truth, {video: draw(rows) for video in draw(st.permutations(videos))}


def of_class(table, label):
    """Return a video's rows of one label, without it."""
    return {video: [row[:-1] for row in rows if row[-1] == label] for video, rows in table.items()}


def scores(truth, detections):
    return detection_precision_by_class(truth, detections).scores()


@settings(max_examples=80)
@given(problems())
def test_each_class_has_the_precision_of_its_own_list(problem):
    truth, detections = problem
    result = detection_precision_by_class(truth, detections)
    known = sorted({row[2] for rows in truth.values() for row in rows})
    assert list(result.labels) == known
    expected = [
        [
            literal_average_precision(of_class(truth, label), of_class(detections, label), tiou)
            for tiou in DETECTION_THRESHOLDS
        ]
        for label in known
    ]
    np.testing.assert_allclose(result.average_precision, expected, atol=1e-12)
    means = list(result.scores().values())
    np.testing.assert_allclose(means[:-1], np.mean(expected, axis=0), atol=1e-12)
    np.testing.assert_allclose(means[-1], np.mean(np.array(expected)[:, :10]), atol=1e-12)
    total = sum(map(len, detections.values()))
    assert result.detections.sum() + result.unknown_labels == total
    assert result.instances.sum() == sum(map(len, truth.values()))


@settings(max_examples=60)
@given(problems())
def test_with_one_class_it_is_the_precision_without_classes(problem):
    truth, detections = (
        {video: [(*row[:-1], "act") for row in rows] for video, rows in table.items()}
        for table in problem
    )
    bare = [of_class(table, "act") for table in (truth, detections)]
    assert scores(truth, detections) == detection_precision(*bare).scores()


@settings(max_examples=40)
@given(problems())
def test_names_of_classes_do_not_matter(problem):
    renamed = {"run": "z", "sit": "m", "wave": "a"}
    other = [
        {video: [(*row[:-1], renamed[row[-1]]) for row in rows] for video, rows in table.items()}
        for table in problem
    ]
    before, after = scores(*problem), scores(*other)
    assert after == pytest.approx(before)


# ---- closed forms and rules ----

TRUTH = {"a": [(0, 4, "sit"), (5, 9, "run")], "b": [(0, 4, "run")]}


def test_perfect_detections_score_1_and_swapped_labels_0():
    perfect = {v: [(s, e, 1.0, label) for s, e, label in rows] for v, rows in TRUTH.items()}
    assert set(scores(TRUTH, perfect).values()) == {1.0}
    swapped = {"sit": "run", "run": "sit"}
    wrong = {v: [(*row[:3], swapped[row[3]]) for row in rows] for v, rows in perfect.items()}
    assert set(scores(TRUTH, wrong).values()) == {0.0}


def test_every_class_weighs_the_same_and_one_without_detections_is_0():
    result = detection_precision_by_class(TRUTH, {"a": [(0, 4, 0.5, "sit")]})
    assert result.scores()["mAP@0.50"] == 0.5
    assert result.classes()["run"]["AP@0.50"] == 0
    assert result.classes()["run"]["detections"] == 0
    assert result.classes()["sit"]["average_AP"] == 1
    assert result.instances.tolist() == [2, 1]


def test_a_detection_of_another_class_takes_no_instance_and_is_no_false_alarm_here():
    rows = [(0, 4, 0.9, "run"), (0, 4, 0.8, "sit"), (5, 9, 0.7, "run")]
    values = detection_precision_by_class(TRUTH, {"a": rows, "b": [(0, 4, 0.6, "run")]}).classes()
    assert values["sit"]["AP@0.50"] == 1
    # wrong, right, right of two: 2/3 at both recalls
    assert values["run"]["AP@0.50"] == pytest.approx(2 / 3)


def test_a_detection_where_its_class_never_happens_is_a_false_alarm():
    rows = {"b": [(0, 4, 0.9, "sit")], "a": [(0, 4, 0.5, "sit")]}
    assert detection_precision_by_class(TRUTH, rows).classes()["sit"]["AP@0.50"] == 0.5


def test_unknown_labels_and_foreign_videos_are_left_out_and_counted():
    rows = {"v_a": [(0, 4, 0.9, "fly"), (0, 4, 0.5, "sit")], "c": [(0, 4, 0.9, "sit")] * 3}
    result = detection_precision_by_class(TRUTH, rows)
    assert result.classes()["sit"]["AP@0.50"] == 1
    assert (result.unknown_labels, result.ignored_detections) == (1, 3)
    assert (result.videos, result.detections.tolist()) == (2, [0, 1])


def test_two_ids_match_themselves_in_every_class():
    truth = {"a": [(0, 4, "sit"), (5, 9, "run")], "v_a": [(0, 4, "run")]}
    # no detection of "sit" has the id "a": that of "v_a" is still not one of "a"
    rows = {"a": [(5, 9, 1.0, "run")], "v_a": [(0, 4, 0.9, "sit")]}
    assert detection_precision_by_class(truth, rows).classes()["sit"]["AP@0.50"] == 0


def test_bad_rows_are_refused_by_name():
    with pytest.raises(ValueError, match=r"video 'a', proposal 2: \[2, 1\] with score 1: start is"):
        scores(TRUTH, {"a": [(0, 1, 1, "run"), (2, 1, 1, "sit")]})
    with pytest.raises(ValueError, match="no instance"):
        scores({"a": []}, {})


# ---- files ----


@pytest.fixture
def files(tmp_path):
    """The truth above with a training video, and its perfect detections with one of that video."""
    database = {
        name: {
            "subset": "validation",
            "duration": 10.0,
            "annotations": [{"segment": [s, e], "label": label} for s, e, label in rows],
        }
        for name, rows in {**TRUTH, "t": [(0, 1, "fly")]}.items()
    }
    database["t"]["subset"] = "training"
    results = {
        name: [{"segment": [s, e], "label": label, "score": 0.5} for s, e, label in rows]
        for name, rows in {**TRUTH, "t": [(0, 1, "fly")]}.items()
    }
    results["a"].append({"segment": [0, 1], "label": " fly ", "score": 0.1})
    (tmp_path / "truth.json").write_text(json.dumps({"database": database}))
    (tmp_path / "detections.json").write_text(json.dumps({"results": results}))
    return tmp_path


def score(folder, *more):
    return main(
        [
            *("score", "--protocol", "detection_by_class"),
            *("--ground-truth", str(folder / "truth.json")),
            *("--proposals", str(folder / "detections.json"), *more),
        ]
    )


def test_files_are_scored(files, capsys):
    assert score(files, "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["protocol"] == "detection_by_class"
    assert [record[key] for key in ("videos", "instances", "proposals")] == [2, 3, 4]
    assert (record["unknown_labels"], record["proposals_left_out"]) == (1, 1)
    assert record["average_mAP"] == record["mAP@0.30"] == 1
    assert list(record["classes"]) == ["run", "sit"]
    assert score(files) == 0
    shown = capsys.readouterr().out
    assert "2 videos, 3 instances, 4 proposals" in shown
    assert "1 proposals left out: their videos are not in the subset\n" in shown
    assert "1 left out: no instance has their label" in shown
    assert shown.splitlines()[-1].split() == ["100.00"] * 5
    assert score(files, "--subset", "all", "--json") == 0
    assert list(json.loads(capsys.readouterr().out)["classes"]) == ["fly", "run", "sit"]


@pytest.mark.parametrize("label", [None, 3, " "])
def test_a_row_without_a_label_is_named(files, capsys, label):
    content = json.loads((files / "detections.json").read_text())
    content["results"]["a"][1]["label"] = label
    (files / "detections.json").write_text(json.dumps(content))
    assert score(files) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "detections.json: video 'a', proposal 2: no label" in line


def test_an_instance_without_a_label_and_files_of_other_videos_are_named(files, capsys):
    text = (files / "truth.json").read_text()
    (files / "truth.json").write_text(text.replace('"sit"', '""'))
    assert score(files) == 2
    assert "truth.json: video 'a': no label" in capsys.readouterr().err
    (files / "truth.json").write_text(text.replace('"a"', '"x"').replace('"b"', '"y"'))
    assert score(files) == 2
    assert "detections.json: none of its videos (e.g. 'a')" in capsys.readouterr().err
