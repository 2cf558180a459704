"""Mean average precision, with and without classes: a slow oracle, invariants, closed forms."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.annotations.tables import write_annotations
from actionspan.cli import main
from actionspan.evaluation import detection_precision, detection_precision_by_class
from actionspan.evaluation.detection import match_greedily
from actionspan.evaluation.recall import DETECTION_THRESHOLDS, tiou
from evaluation.oracle import literal_average_precision
from tiers import examples
from worlds.scored import annotated, write_results

# Times in sixteenths of a second: sums and differences are exact, so that thresholds are too.
times = st.integers(0, 64).map(lambda ticks: ticks / 16)
segments = st.tuples(times, times).map(lambda pair: tuple(sorted(pair)))
labels = st.sampled_from(["run", "sit", "wave"])
values = st.sampled_from([0.0, 0.25, 0.5, 1.0])
instances = st.lists(st.tuples(segments, labels).map(lambda x: (*x[0], x[1])), max_size=5)
rows_ = st.lists(st.tuples(segments, values, labels).map(lambda x: (*x[0], *x[1:])), max_size=12)


@st.composite
def labelled_problems(draw):
    videos = [f"v_{number}" for number in range(draw(st.integers(1, 4)))]
    truth = {video: draw(instances) for video in videos}
    truth["v_0"] = [*truth["v_0"], (1.0, 3.0, "sit")]
    return truth, {video: draw(rows_) for video in draw(st.permutations(videos))}


def of_class(table, label=None):
    """Return a video's rows of one label, or of all, without it."""
    return {
        video: [row[:-1] for row in rows if label in (None, row[-1])]
        for video, rows in table.items()
    }


problems = labelled_problems().map(lambda problem: tuple(map(of_class, problem)))


def scores(truth, proposals):
    return detection_precision(truth, proposals).scores()


def literal(truth, proposals):
    return [literal_average_precision(truth, proposals, tiou) for tiou in DETECTION_THRESHOLDS]


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
    found = []
    for column in right[order].T:
        ranks = np.flatnonzero(column) + 1.0
        precision = np.arange(1, len(ranks) + 1) / ranks
        envelope = np.maximum.accumulate(precision[::-1])
        found.append(float(envelope.sum()) / sum(map(len, truth.values())))
    return found


@examples(100)
@given(problems)
def test_equals_the_literal_rule_and_has_the_bits_of_sorting(problem):
    found = detection_precision(*problem).average_precision
    np.testing.assert_allclose(found, literal(*problem), atol=1e-12)
    assert found.tolist() == sorted_precision(*problem)


@examples(80)
@given(labelled_problems())
def test_each_class_has_the_precision_of_its_own_list(problem):
    truth, detections = problem
    result = detection_precision_by_class(truth, detections)
    known = sorted({row[2] for rows in truth.values() for row in rows})
    assert list(result.labels) == known
    expected = np.array([literal(of_class(truth, label), of_class(detections, label))
                         for label in known])  # fmt: skip
    np.testing.assert_allclose(result.average_precision, expected, atol=1e-12)
    means = list(result.scores().values())
    np.testing.assert_allclose(means[:-1], expected.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(means[-1], expected[:, :10].mean(), atol=1e-12)
    total = sum(map(len, detections.values()))
    assert result.detections.sum() + result.unknown_labels == total
    assert result.instances.sum() == sum(map(len, truth.values()))
    # with one class it is the precision without classes
    act = [
        {video: [(*row[:-1], "act") for row in rows] for video, rows in table.items()}
        for table in problem
    ]
    assert detection_precision_by_class(*act).scores() == scores(*map(of_class, problem))


# ---- closed forms and traps of one class ----

TWO = {"a": [(0, 4), (5, 9)]}
ONE_EACH = {"a": [(0, 4)], "b": [(0, 4)]}
HIT, MISS = (0, 4, 0.5), (8, 9, 0.5)


@pytest.mark.parametrize(
    ("truth", "proposals", "expected"),
    [
        # right, wrong, right: precision 1 up to recall 1/2, then 2/3
        (TWO, {"a": [(0, 4, 0.9), (20, 21, 0.8), (5, 9, 0.7)]}, {"0.95": 5 / 6}),
        # a second proposal of one instance is wrong
        (TWO, {"a": [(0, 4, 0.9), (0, 4, 0.8), (5, 9, 0.7)]}, {"0.50": 5 / 6}),
        # wrong, right, right: 2/3 is the best precision at the first recall or further on
        (TWO, {"a": [(20, 21, 0.9), (0, 4, 0.8), (5, 9, 0.7)]}, {"0.50": 2 / 3}),
        # the next best instance where the best is taken; it overlaps 8 of 10 seconds
        ({"a": [(0, 10), (0, 8)]}, {"a": [(0, 10, 0.9), (0, 10, 0.8)]}, {"0.80": 1, "0.95": 0.5}),
        # one list over all videos, in which equal scores keep the order given
        (ONE_EACH, {"a": [HIT], "b": [MISS]}, {"0.50": 0.5}),
        (ONE_EACH, {"b": [MISS], "a": [HIT]}, {"0.50": 0.25}),
        # an instance of no length stays in the denominator
        ({"a": [(0, 4), (2, 2)]}, {"a": [(0, 4, 1.0), (2, 2, 0.5)]}, {"0.30": 0.5}),
    ],
)
def test_closed_forms(truth, proposals, expected):
    found = scores(truth, proposals)
    assert {tiou: found[f"mAP@{tiou}"] for tiou in expected} == pytest.approx(expected)


def test_of_two_instances_with_equal_tiou_the_later_is_matched():
    # the second proposal finds the first instance alone
    tious = np.array([[0.6, 0.6], [0.6, 0.0]])
    assert match_greedily(tious, np.array([0.5]))[:, 0].tolist() == [True, True]
    assert match_greedily(tious[:, ::-1], np.array([0.5]))[:, 0].tolist() == [True, False]


def test_videos_without_an_instance_give_false_alarms_and_foreign_ones_nothing():
    truth = {"a": [(0, 4)], "calm": []}
    proposals = {"a": [(0, 4, 0.5)], "v_calm": [(0, 4, 0.9)], "foreign": [(0, 4, 0.9)] * 50}
    result = detection_precision(truth, proposals)
    assert result.scores()["mAP@0.50"] == 0.5
    assert (result.videos, result.instances) == (2, 1)
    assert (result.proposals, result.ignored_proposals) == (2, 50)


def test_scores_are_named_and_averaged_over_the_ten_thresholds():
    found = scores({"a": [(0.0, 10.0)]}, {"a": [(0.0, 6.2, 1.0)]})
    assert [name for name, value in found.items() if value == 1] == [
        *("mAP@0.50", "mAP@0.55", "mAP@0.60", "mAP@0.30", "mAP@0.40")
    ]
    assert len(found) == 13
    assert found["average_mAP"] == pytest.approx(0.3)


def test_bad_rows_are_refused_by_name():
    with pytest.raises(ValueError, match=r"video 'a', proposal 1: \[2, 1\] with score 1: start is"):
        scores({"a": [(0, 1)]}, {"a": [(2, 1, 1)]})
    with pytest.raises(ValueError, match="video 'a', instance 1: .*not finite"):
        scores({"a": [(0, float("inf"))]}, {})
    for function in (detection_precision, detection_precision_by_class):
        with pytest.raises(ValueError, match="no instance"):
            function({"a": []}, {})
    rows = {"a": [(0, 1, 1, "run"), (2, 1, 1, "sit")]}
    with pytest.raises(ValueError, match=r"video 'a', proposal 2: \[2, 1\] with score 1: start is"):
        detection_precision_by_class(TRUTH, rows)


TRUTH = {"a": [(0, 4, "sit"), (5, 9, "run")], "b": [(0, 4, "run")]}


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


@pytest.fixture
def files(tmp_path):
    """The truth above with a training video, and its perfect detections with one of that video."""
    known = [annotated(name, *rows, duration=10.0) for name, rows in TRUTH.items()]
    training = annotated("t", (0, 1, "fly"), subset="training", duration=10.0)
    write_annotations(tmp_path / "truth.json", [*known, training])
    results = {name: [(s, e, 0.5, label) for s, e, label in rows] for name, rows in TRUTH.items()}
    results["a"].append((0, 1, 0.1, " fly "))
    write_results(tmp_path / "detections.json", {**results, "t": [(0, 1, 0.5, "fly")]})
    return tmp_path


def score(folder, *more):
    words = ["score", "--protocol", "detection_by_class"]
    words += ["--ground-truth", str(folder / "truth.json")]
    return main([*words, "--proposals", str(folder / "detections.json"), *more])


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


@pytest.mark.parametrize(
    ("file", "old", "new", "line"),
    [
        *(("detections", '"run"', new, "video 'a', proposal 2: no label")
          for new in ("null", "3", '" "')),
        ("truth", '"sit"', '""', "video 'a': no label"),
        ("detections", '"a": [', '"x": [', None),
    ],
)  # fmt: skip
def test_what_has_no_label_or_other_videos_is_one_line(files, capsys, file, old, new, line):
    path = files / f"{file}.json"
    assert old in path.read_text()
    if line is None:  # no video in common
        write_results(path, {"x": [(0, 4, 0.5, "sit")]})
    else:
        path.write_text(path.read_text().replace(old, new, 1 if file == "detections" else -1))
    assert score(files) == 2
    (shown,) = capsys.readouterr().err.splitlines()
    assert f"{file}.json: " + (line or "none of its videos (e.g. 'x')") in shown
