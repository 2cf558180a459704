"""The classifier of segments: what it learns, how it is chosen, few instances, its commands."""

import json
from dataclasses import replace

import h5py
import numpy as np
import pytest

from actionspan.annotations.tables import Instance, write_annotations
from actionspan.cli import main
from actionspan.features.steps import cut_windows
from actionspan.features.store import open_features
from actionspan.proposals import SegmentClassifier, train_classifier
from actionspan.proposals.classifier_training import LOG_COLUMNS, LabelledVideo, _classes
from actionspan.proposals.segment_classifier import load_classifier, save_classifier
from actionspan.proposals.settings import ClassifierSettings
from actionspan.storage.writing import read_json, read_tsv
from proposals.conftest import run
from worlds.features import write_features
from worlds.scored import annotated, write_results

STEPS, CHANNELS = 40, 4
LABELS = ("fall", "sit", "wave")


def showing(random, classes, groups, noise=1.0):
    """Return a video in which channel k is high during instances of class k, a group at once."""
    sequence = random.normal(scale=noise, size=(STEPS, CHANNELS)).astype(np.float32)
    instances = []
    for place, labels in enumerate(groups):
        start, length = 2 + 12 * place, int(random.integers(4, 9))
        for label in labels:
            sequence[start : start + length, classes.index(label)] += 3
            instances.append(Instance(start=start / 2, end=(start + length) / 2, label=label))
    return LabelledVideo(sequence=sequence, duration_seconds=20.0, instances=instances)


def video(random, labels=LABELS, noise=1.0):
    """Return a video with an instance of each class."""
    groups = [[label] for label in random.permutation(labels).tolist()]
    return showing(random, LABELS, groups, noise)


def videos(count, seed=0, **more):
    random = np.random.default_rng(seed)
    return [video(random, **more) for _ in range(count)]


def relabelled(each, name):
    """Return a video whose instances have the labels that `name` makes of theirs."""
    return replace(each, instances=[replace(one, label=name(one.label)) for one in each.instances])


def test_it_learns_what_marks_a_class():
    classifier, log = train_classifier(videos(12), CHANNELS)
    assert classifier.labels == LABELS
    assert classifier.channels == CHANNELS
    right = []
    for each in videos(10, seed=1):
        segments = [[one.start, one.end] for one in each.instances]
        scores = classifier.scores(each.sequence, segments, each.duration_seconds)
        np.testing.assert_allclose(scores.sum(axis=1), 1)
        names = [LABELS[place] for place in scores.argmax(axis=1)]
        right += [name == one.label for name, one in zip(names, each.instances, strict=True)]
    assert np.mean(right) > 0.95
    assert all(tuple(row) == LOG_COLUMNS for row in log)
    assert [row["penalty"] for row in log] == [0.3, 0.03, 0.003]
    assert {(row["folds"], row["videos"], row["instances"]) for row in log} == {(5, 12, 36)}
    (kept,) = (row for row in log if row["kept"])
    assert kept["log_loss"] == min(row["log_loss"] for row in log)
    assert kept["accuracy"] > 0.9
    assert kept["accuracy_moved"] > 0.85


def test_where_nothing_marks_a_class_the_strongest_penalty_is_best():
    random = np.random.default_rng(3)
    named = [relabelled(each, lambda _: str(random.choice(LABELS))) for each in videos(20)]
    settings = ClassifierSettings(penalties=(1e-4, 100.0))
    _, (strong, weak) = train_classifier(named, CHANNELS, settings)
    assert strong["penalty"] == 100
    assert strong["kept"]
    assert strong["log_loss"] == pytest.approx(np.log(3), abs=0.1)
    assert weak["log_loss"] > strong["log_loss"] + 0.2


def test_cross_validation_is_over_videos():
    """Two videos that show the same with opposite classes: each misleads about the other."""
    first = videos(1, noise=0.1)[0]
    swapped = {"fall": "sit", "sit": "fall", "wave": "wave"}
    second = relabelled(first, swapped.__getitem__)
    _, log = train_classifier([first, second], CHANNELS)
    assert {row["accuracy"] for row in log} == {1 / 3}
    assert log[0]["folds"] == 2


def test_one_class_is_certain_and_none_labels_nothing():
    only = [replace(each, instances=each.instances[:1]) for each in videos(1)]
    classifier, log = train_classifier(only, CHANNELS)
    assert log == []
    assert len(classifier.labels) == 1
    segments = [[0.0, 3.0], [1.0, 20.0]]
    assert classifier.scores(only[0].sequence, segments, 20.0).tolist() == [[1.0], [1.0]]
    empty = [replace(each, instances=[]) for each in videos(2)]
    for given in ([], empty):
        classifier, log = train_classifier(given, CHANNELS)
        assert (classifier.labels, log) == ((), [])
        assert classifier.scores(only[0].sequence, segments, 20.0).shape == (2, 0)


def test_a_single_video_is_learned_with_the_strongest_penalty():
    (found, log), (strong, _) = (
        train_classifier(videos(1), CHANNELS, ClassifierSettings(penalties=penalties))
        for penalties in ((0.01, 0.5), (0.5,))
    )
    assert log == []
    assert np.array_equal(found.coefficients, strong.coefficients)


def test_a_class_of_a_single_video_is_an_error_in_its_fold_and_not_in_the_loss():
    given = [video(np.random.default_rng(0), ("fall", "wave"))]
    given += videos(3, seed=5, labels=("sit", "wave"))
    _, log = train_classifier(given, CHANNELS, ClassifierSettings(penalties=(0.1,)))
    assert log[0]["accuracy"] <= 7 / 8
    assert log[0]["log_loss"] < 2


def both(random):
    """Return a video of 4 instances: of each class alone, and of both at the same time."""
    return showing(random, ("run", "talk"), (["run"], ["talk"], ["run", "talk"]))


def test_classes_that_happen_at_once_are_learned_each_against_the_rest():
    random = np.random.default_rng(4)
    classifier, log = train_classifier([both(random) for _ in range(20)], CHANNELS)
    assert classifier.several
    tested = [both(random) for _ in range(10)]
    found = []
    for each in tested:
        segments = [[one.start, one.end] for one in each.instances[:3]]
        found.append(classifier.scores(each.sequence, segments, 20.0) > 0.5)
    right = np.array([[True, False], [False, True], [True, True]]) == np.array(found)
    assert right.mean() > 0.9
    (kept,) = (row for row in log if row["kept"])
    assert kept["accuracy"] > 0.9, "the other class of a segment is no error"
    assert kept["log_loss"] < 0.6


def test_a_class_that_only_touches_another_is_its_negative():
    """Of a long instance a short one inside it says nothing; of the short one the long one does."""
    made = videos(6)
    walk = Instance(start=0, end=19, label="walk")
    long = [replace(each, instances=[*each.instances, walk]) for each in made]
    assert train_classifier(long, CHANNELS)[0].several
    edge = [
        replace(each, instances=[replace(one, end=one.end + 2) for one in each.instances])
        for each in made
    ]
    assert not train_classifier(edge, CHANNELS)[0].several, "at most a third is shared"
    classes, also = _classes(long[0].instances, (*LABELS, "walk"))
    assert also[:3, 3].all()
    assert not also[3].any()
    assert not also[:, :3].any()
    assert classes.tolist()[3] == 3


def test_a_classifier_of_several_labels_comes_back_from_its_file(tmp_path):
    random = np.random.default_rng(4)
    classifier, _ = train_classifier([both(random) for _ in range(3)], CHANNELS)
    save_classifier(tmp_path / "c.safetensors", classifier, "digest")
    again = load_classifier(tmp_path / "c.safetensors")
    assert again.several
    assert np.array_equal(again.coefficients, classifier.coefficients)
    plain = SegmentClassifier(labels=("a",), coefficients=np.zeros((1, 4 * 3 + 2)))
    save_classifier(tmp_path / "plain", plain, "digest")
    assert not load_classifier(tmp_path / "plain").several
    assert b"several" not in (tmp_path / "plain").read_bytes(), "such files are as before"


def test_other_features_are_refused():
    classifier = SegmentClassifier(labels=("a",), coefficients=np.zeros((1, 4 * 3 + 2)))
    with pytest.raises(ValueError, match="4 channels; the classifier has 3"):
        classifier.scores(np.zeros((5, 4), np.float32), [[0, 1]], 5.0)


# ---- commands ----


FORMS = pytest.mark.parametrize("folder", ["video", "windows"], indirect=True)


@pytest.fixture
def folder(request, tmp_path):
    """Write features.h5, annotations.json and proposals.json of 8 + 3 videos."""
    form = getattr(request, "param", "windows")
    made = videos(11)
    names = [f"v{number:02}" for number in range(11)]
    subsets = ["training"] * 8 + ["validation"] * 3
    starts, window = (np.array([0, 10, 20]), 20) if form == "windows" else (np.array([0]), STEPS)
    repeated = [name for name in names for _ in starts]
    steps = np.concatenate([cut_windows(each.sequence, starts, window) for each in made])
    facts = repeated, np.full(len(repeated), 20.0), np.repeat(subsets, len(starts))
    windows = {"first_step": np.tile(starts, 11), "length": np.full(len(repeated), STEPS)}
    more = windows if form == "windows" else {}
    write_features(tmp_path / "features.h5", steps, *facts, **more)
    spans = [[(one.start, one.end, one.label) for one in each.instances] for each in made]
    known, ranked = [], {}
    for name, subset, rows in zip(names, subsets, spans, strict=True):
        known.append(annotated(name, *rows, subset=subset))
        ranked[name] = [(start, end, 1 / rank) for rank, (start, end, _) in enumerate(rows, 1)]
    write_annotations(tmp_path / "annotations.json", known)
    write_results(tmp_path / "proposals.json", ranked)
    return tmp_path


def train(folder, *more):
    given = {"features": "features.h5", "annotations": "annotations.json"}
    made = {"out": "classifier.safetensors", "out_log": "classifier.tsv"}
    return run(folder, "classifier", *more, **given, **made)


def detections(folder, *more, classifier="classifier.safetensors"):
    files = {"proposals": "proposals.json", "features": "features.h5", "out": "detections.json"}
    return run(folder, "detections", *more, classifier=classifier, **files)


@FORMS
def test_detections_of_exact_proposals_are_right_and_scored_so(folder, capsys):
    assert train(folder) == 0
    assert [row["kept"] for row in read_tsv(folder / "classifier.tsv")].count("True") == 1
    assert detections(folder, "--classes", "1") == 0
    content = read_json(folder / "detections.json")
    assert set(content) == {"version", "results", "external_data"}
    assert {len(rows) for rows in content["results"].values()} == {3}
    truth, made = str(folder / "annotations.json"), str(folder / "detections.json")
    words = ["score", "--protocol", "detection_by_class", "--json", "--ground-truth", truth]
    capsys.readouterr()
    assert main([*words, "--proposals", made]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["mAP@0.95"] > 0.9
    assert list(record["classes"]) == list(LABELS)
    out, given = folder / "evaluation", folder / "proposals.json"
    words = f"evaluation detections --detections {made} --annotations {truth} --proposals {given}"
    assert main(f"{words} --out-json {out}/mtn.json --out-markdown {out}/mtn.md".split()) == 0
    written = read_json(out / "mtn.json")
    assert written.pop("without_labels")["average_mAP"] == 1
    assert written == {**record, "method": "mtn"}
    page = (out / "mtn.md").read_text()
    assert f"| **mean over classes** | 9 | 9 | {100 * record['mAP@0.30']:.2f} |" in page
    assert "| proposals without labels | 9 |  | 100.00 |" in page
    assert "| fall | 3 | " in page


def test_of_too_many_instances_every_so_many_videos_are_learned(folder):
    assert train(folder, "--most-instances", "12") == 0
    found = load_classifier(folder / "classifier.safetensors")
    features = open_features(folder / "features.h5")
    subset = [features.subset[rows.start] for rows in features.videos()]
    training = [each for each, name in zip(videos(11), subset, strict=True) if name == "training"]
    assert sum(len(each.instances) for each in training) == 24
    expected, _ = train_classifier(training[::2], features.array.shape[2])
    np.testing.assert_array_equal(found.coefficients, expected.coefficients)


def test_without_instances_nothing_is_labelled_and_a_line_says_so(folder, capsys):
    bare = [annotated(f"v{number:02}", subset="training") for number in range(11)]
    write_annotations(folder / "annotations.json", bare)
    assert train(folder) == 0
    assert "no training video has an instance; proposals get no labels" in capsys.readouterr().err
    assert load_classifier(folder / "classifier.safetensors").labels == ()
    assert detections(folder) == 0
    assert not any(read_json(folder / "detections.json")["results"].values())


def test_mistakes_are_one_line(folder, capsys):
    assert detections(folder, classifier="annotations.json") == 2
    assert "annotations.json: not a complete model file" in capsys.readouterr().err
    assert train(folder) == 0
    (folder / "proposals.json").write_text('{"results": {"other": []}}')
    assert detections(folder) == 2
    assert "features.h5: no video 'other', which has proposals" in capsys.readouterr().err
    with h5py.File(folder / "features.h5", "a") as file:
        narrow = file["features"][:, :, :2]
        del file["features"]
        file["features"] = narrow
    capsys.readouterr()
    assert detections(folder) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "features.h5: 2 channels, but" in line
    assert "was trained on 4; train it on these features" in line
