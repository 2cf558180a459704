"""A video as several windows: labels, which windows train, and merged probabilities."""

from dataclasses import replace

import h5py
import numpy as np
import pytest
import torch

from actionspan.cli import main
from actionspan.dataset.tables import Annotation, Instance, read_annotations, write_annotations
from actionspan.errors import InputError
from actionspan.features.steps import cut_windows, window_starts
from actionspan.temporal.labels import boundary_labels
from actionspan.temporal.networks import Segments, TemporalNetwork, load_model
from actionspan.temporal.prediction import predict_probabilities, predict_windows
from actionspan.temporal.probabilities import (
    Prediction,
    read_probabilities,
    video_probabilities,
    write_probabilities,
)
from actionspan.temporal.samples import read_samples, window_coverage
from actionspan.temporal.settings import TemporalSettings

WINDOW, STRIDE = 20, 10
LENGTHS = {"a": 45, "b": 20, "c": 12, "d": 33}
SUBSETS = {"a": "training", "b": "training", "c": "validation", "d": "validation"}


@pytest.fixture
def windowed(tmp_path):
    """Write features.h5 with windows of four videos, one second a step, and annotations."""
    random = np.random.default_rng(0)
    rows, annotations, sequences = [], [], {}
    for name, length in LENGTHS.items():
        sequence = random.normal(size=(length, 5)).astype(np.float32)
        begin, end = length // 4, length // 4 + 6
        sequence[begin:end, 0] += 4
        sequences[name] = sequence
        starts = window_starts(length, WINDOW, STRIDE, rest=0)
        for start, part in zip(starts, cut_windows(sequence, starts, WINDOW), strict=True):
            rows.append((name, start, length, part))
        annotations.append(
            Annotation(
                video_id=name,
                subset=SUBSETS[name],
                duration_seconds=float(length),
                instances=(Instance(start=float(begin), end=float(end), label="act"),),
            )
        )
    text = h5py.string_dtype()
    with h5py.File(tmp_path / "features.h5", "w") as file:
        file.attrs["digest"] = "windows"
        file.create_dataset("features", data=np.stack([row[3] for row in rows]))
        file.create_dataset("video_id", data=[row[0] for row in rows], dtype=text)
        file.create_dataset("subset", data=[SUBSETS[row[0]] for row in rows], dtype=text)
        file["first_step"] = [row[1] for row in rows]
        file["length"] = [row[2] for row in rows]
        file["duration_seconds"] = [float(row[2]) for row in rows]
    write_annotations(tmp_path / "annotations.json", annotations)
    return tmp_path, rows, sequences


def read(folder, **settings):
    return read_samples(
        folder / "features.h5", folder / "annotations.json", TemporalSettings(**settings)
    )


def test_a_window_has_its_part_of_the_videos_labels(windowed):
    folder, rows, _ = windowed
    samples = read(folder)
    truth = {known.video_id: known for known in read_annotations(folder / "annotations.json")}
    for index, (name, start, length, _) in enumerate(rows):
        one = truth[name].instances[0]
        whole = boundary_labels(np.array([[one.start, one.end]]), float(length), steps=length)
        expected = np.zeros((WINDOW, 3), bool)
        part = whole[start : start + WINDOW]
        expected[: len(part)] = part
        np.testing.assert_array_equal(samples.labels[index], expected)
    assert len(samples.training) + len(samples.validation) == len(rows)


def test_windows_that_hold_too_little_of_an_instance_are_left_out(windowed):
    folder, rows, _ = windowed
    samples = read(folder, window_coverage=0.9)
    used = {*samples.training.tolist(), *samples.validation.tolist()}
    for index, (_, start, length, _) in enumerate(rows):
        begin = length // 4
        held = max(0, min(begin + 6, start + WINDOW) - max(begin, start)) / 6
        assert (index in used) == (held > 0.9)


def test_a_window_that_holds_exactly_the_coverage_is_left_out(windowed):
    """Windows of video a begin at 0, 10, 20 and 25; the second holds 5 of the 10 seconds."""
    folder, rows, _ = windowed
    changed = [
        replace(one, instances=(Instance(start=5.0, end=15.0, label="act"),))
        for one in read_annotations(folder / "annotations.json")
    ]
    write_annotations(folder / "annotations.json", changed)
    windows = [index for index, row in enumerate(rows) if row[0] == "a"]
    assert [rows[index][1] for index in windows] == [0, 10, 20, 25]
    for coverage, used in ((0.5, windows[:1]), (0.49, windows[:2])):
        training = read(folder, window_coverage=coverage).training.tolist()
        assert [index for index in training if index in windows] == used


def test_no_window_to_train_on_is_one_line(windowed):
    folder, _, _ = windowed
    known = read_annotations(folder / "annotations.json")
    write_annotations(folder / "annotations.json", [replace(one, instances=()) for one in known])
    assert len(read(folder).training)
    with pytest.raises(InputError, match=r"no training row holds more than window_coverage 0\.9"):
        read(folder, window_coverage=0.9)


def test_coverage_is_of_the_segment_held_best():
    segments = np.array([[0.0, 4.0], [9.0, 19.0]])
    assert window_coverage(segments, np.array([0, 2, 10, 30]), 10).tolist() == [1, 0.5, 0.9, 0]
    assert window_coverage(np.empty((0, 2)), np.array([0, 2]), 10).tolist() == [0, 0]


def test_a_segment_without_length_covers_nothing_and_warns_of_nothing():
    starts = np.array([0, 2, 20, 100])
    with np.errstate(all="raise"):
        assert window_coverage(np.array([[3.0, 3.0]]), starts, 10).tolist() == [0, 0, 0, 0]
        both = np.array([[3.0, 3.0], [1.0, 5.0]])
        assert window_coverage(both, starts, 10).tolist() == [1, 0.75, 0, 0]


def test_probabilities_of_windows_are_merged_to_videos(windowed):
    folder, rows, _ = windowed
    features, out = str(folder / "features.h5"), folder / "run"
    train = ["--annotations", str(folder / "annotations.json"), "--epochs", "2", "--hidden", "8"]
    assert main(["temporal", "train", "--features", features, *train, "--out", str(out)]) == 0
    predicted = folder / "probabilities.h5"
    model = str(out / "model.pt")
    assert (
        main(
            ["temporal", "predict", "--model", model, "--features", features]
            + ["--out", str(predicted)]
        )
        == 0
    )
    network = load_model(out / "model.pt")
    with h5py.File(predicted) as file:
        found = read_probabilities(file, predicted)
        assert found.video_id == list(LENGTHS)
        assert found.steps.tolist() == list(LENGTHS.values())
        whole = [values.copy() for values in found]
        for index, values in enumerate(whole):
            np.testing.assert_array_equal(found.video(index), values)
    for name, values in zip(LENGTHS, whole, strict=True):
        total, count = np.zeros((LENGTHS[name], 3)), np.zeros((LENGTHS[name], 1))
        for other, start, length, part in rows:
            if other == name:
                inside = slice(start, min(start + WINDOW, length))
                total[inside] += predict_probabilities(network, part)[: inside.stop - start]
                count[inside] += 1
        np.testing.assert_allclose(values, total / count, atol=1e-6)
        np.testing.assert_array_equal(video_probabilities(predicted, name), values)
    assert video_probabilities(predicted, "nobody") is None
    candidates = folder / "candidates.h5"
    made = ["proposals", "candidates", "--probabilities", str(predicted), "--out", str(candidates)]
    assert main([*made, "--longest", "5"]) == 0
    with h5py.File(candidates) as file:
        offsets = file["offsets"][:]
        for index, length in enumerate(LENGTHS.values()):
            segments = file["segments"][offsets[index] : offsets[index + 1]] * length
            assert (segments[:, 1] - segments[:, 0] < 5.001).all()


def test_probabilities_that_do_not_fit_are_named(tmp_path):
    path = tmp_path / "probabilities.h5"
    values = [Prediction(np.full((steps, 3), 0.5, np.float32)) for steps in (2, 3)]
    write_probabilities(path, "x", ["a", "b"], [1.0, 1.0], ["training"] * 2, [2, 3], values)
    with h5py.File(path, "r+") as file:
        assert file["probabilities"].shape == (5, 3)
        file["offsets"][...] = [0, 2, 4]
    with h5py.File(path) as file, pytest.raises(InputError, match=r"offsets do not fit 2 videos"):
        read_probabilities(file, path)
    with h5py.File(path, "r+") as file:
        del file["offsets"]
    with h5py.File(path) as file, pytest.raises(InputError, match=r"is not \(videos, bins, 3\)"):
        read_probabilities(file, path)


class Finder(TemporalNetwork):
    """Finds the same two segments in every window, and a third whose score is its first feature."""

    channels = 5

    def forward(self, features):
        return torch.full((len(features), features.shape[1], 3), 0.5)

    def segments(self, features):
        ends = torch.tensor([[0.25, 0.5], [0.5, 1.0], [0.0, 0.1]])
        sure = torch.tensor([0.9, 0.8])
        return [Segments(ends, torch.cat([sure, row[0, :1]])) for row in features]


def test_the_segments_of_windows_are_those_of_the_video():
    """Windows of 20 at steps 0, 10 and 5 of 25: the second passes the end by 5 steps."""
    windows = np.arange(300, dtype=np.float32).reshape(3, 20, 5) / 1000
    starts = np.array([0, 10, 5])
    found = predict_windows(Finder(), windows, starts, 25)
    expected = [
        *((5, 10), (10, 20), (0, 2)),
        *((15, 20), (20, 25), (10, 12)),  # the second is cut
        *((10, 15), (15, 25), (5, 7)),
    ]
    np.testing.assert_allclose(found.segments * 25, expected, rtol=1e-6)
    np.testing.assert_allclose(found.scores, [0.9, 0.8, 0, 0.9, 0.8, 0.1, 0.9, 0.8, 0.2], rtol=1e-6)
    assert found.segments.dtype == found.scores.dtype == np.float32
    assert found.probabilities.shape == (25, 3)
    # what lies beyond the end is left out
    found = predict_windows(Finder(), windows[:1], starts[:1], 10)
    np.testing.assert_allclose(found.segments * 10, [(5, 10), (0, 2)], rtol=1e-6)


def test_segments_come_back_by_video(tmp_path):
    path = tmp_path / "probabilities.h5"
    random = np.random.default_rng(0)
    made = [
        Prediction(*(random.random(shape, np.float32) for shape in ((4, 3), (count, 2), (count,))))
        for count in (3, 0, 20000)
    ]
    names = ["a", "b", "c"]
    write_probabilities(path, "x", names, [1.0] * 3, ["training"] * 3, [4] * 3, iter(made))
    with h5py.File(path) as file:
        for one, other in zip(read_probabilities(file, path).predictions(), made, strict=True):
            for values, expected in zip(one, other, strict=True):
                np.testing.assert_array_equal(values, expected)
    with h5py.File(path, "r+") as file:
        file["segments"].resize(20, axis=0)
    with h5py.File(path) as file, pytest.raises(InputError, match="segment_offsets do not fit 3"):
        read_probabilities(file, path)
