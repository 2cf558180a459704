"""A video as several windows: labels, which windows train, and merged probabilities."""

from dataclasses import replace

import h5py
import numpy as np
import pytest

from actionspan.annotations.tables import Instance, read_annotations, write_annotations
from actionspan.cli import main
from actionspan.errors import InputError
from actionspan.features.steps import cut_windows, window_starts
from actionspan.temporal.labels import boundary_labels
from actionspan.temporal.networks import load_model
from actionspan.temporal.prediction import predict_probabilities
from actionspan.temporal.probabilities import (
    Prediction,
    read_probabilities,
    video_probabilities,
    write_probabilities,
)
from actionspan.temporal.samples import read_samples, window_coverage
from actionspan.temporal.settings import TemporalSettings
from worlds.features import write_features
from worlds.scored import annotated

WINDOW, STRIDE = 20, 10
LENGTHS = {"a": 45, "b": 20, "c": 12, "d": 33}
SUBSETS = {"a": "training", "b": "training", "c": "validation", "d": "validation"}


@pytest.fixture
def windowed(tmp_path):
    """Write features.h5 with windows of four videos, one second a step, and annotations.

    Returns their folder, and of each window the video, its first step, the video's length and
    begin, and the features.
    """
    random = np.random.default_rng(0)
    rows, annotations = [], []
    for name, length in LENGTHS.items():
        sequence, begin = random.normal(size=(length, 5)).astype(np.float32), length // 4
        sequence[begin : begin + 6, 0] += 4
        starts = window_starts(length, WINDOW, STRIDE, rest=0)
        for start, part in zip(starts, cut_windows(sequence, starts, WINDOW), strict=True):
            rows.append((name, start, length, begin, part))
        known = {"subset": SUBSETS[name], "duration": float(length)}
        annotations.append(annotated(name, (float(begin), begin + 6.0), **known))
    names, firsts, lengths, _, features = zip(*rows, strict=True)
    subsets, windows = [SUBSETS[name] for name in names], {"first_step": firsts, "length": lengths}
    path, array = tmp_path / "features.h5", np.stack(features)
    write_features(path, array, names, lengths, subsets, **windows)
    write_annotations(tmp_path / "annotations.json", annotations)
    return tmp_path, rows


def read(folder, **settings):
    files = folder / "features.h5", folder / "annotations.json"
    return read_samples(*files, TemporalSettings(**settings))


def annotate(folder, *instances):
    """Give all videos other instances."""
    path = folder / "annotations.json"
    known = read_annotations(path)
    write_annotations(path, [replace(one, instances=instances) for one in known])


def test_a_window_has_its_part_of_the_videos_labels(windowed):
    folder, rows = windowed
    samples = read(folder)
    for labels, (_, start, length, begin, _) in zip(samples.labels, rows, strict=True):
        one = np.array([[begin, begin + 6.0]])
        part = boundary_labels(one, float(length), steps=length)[start : start + WINDOW]
        expected = np.zeros((WINDOW, 3), bool)
        expected[: len(part)] = part
        np.testing.assert_array_equal(labels, expected)
    assert len(samples.training) + len(samples.validation) == len(rows)


def test_windows_that_hold_too_little_of_an_instance_are_left_out(windowed):
    """One that holds exactly the coverage too."""
    folder, rows = windowed
    samples = read(folder, window_coverage=0.9)
    used = {*samples.training.tolist(), *samples.validation.tolist()}
    for index, (_, start, _, begin, _) in enumerate(rows):
        held = max(0, min(begin + 6, start + WINDOW) - max(begin, start)) / 6
        assert (index in used) == (held > 0.9)
    # windows of video a begin at 0, 10, 20 and 25; the second holds 5 of the 10 seconds
    annotate(folder, Instance(start=5.0, end=15.0, label="act"))
    windows = [index for index, row in enumerate(rows) if row[0] == "a"]
    assert [rows[index][1] for index in windows] == [0, 10, 20, 25]
    for coverage, used in ((0.5, windows[:1]), (0.49, windows[:2])):
        training = read(folder, window_coverage=coverage).training.tolist()
        assert [index for index in training if index in windows] == used
    annotate(folder)
    assert len(read(folder).training)
    with pytest.raises(InputError, match=r"no training row holds more than window_coverage 0\.9"):
        read(folder, window_coverage=0.9)


@pytest.mark.parametrize(
    ("segments", "starts", "expected"),
    [
        ([[0.0, 4.0], [9.0, 19.0]], [0, 2, 10, 30], [1, 0.5, 0.9, 0]),
        (np.empty((0, 2)), [0, 2], [0, 0]),
        # a segment without length covers nothing and warns of nothing
        ([[3.0, 3.0]], [0, 2, 20, 100], [0, 0, 0, 0]),
        ([[3.0, 3.0], [1.0, 5.0]], [0, 2, 20, 100], [1, 0.75, 0, 0]),
    ],
)
def test_coverage_is_of_the_segment_held_best(segments, starts, expected):
    with np.errstate(all="raise"):
        found = window_coverage(np.array(segments), np.array(starts), 10)
    assert found.tolist() == expected


def test_probabilities_of_windows_are_merged_to_videos(windowed):
    folder, rows = windowed
    features, model = folder / "features.h5", folder / "run/model.safetensors"
    predicted, candidates = folder / "probabilities.h5", folder / "candidates.h5"
    for words in (
        f"temporal train --annotations {folder}/annotations.json --epochs 2 --hidden 8"
        f" --features {features} --out {folder}/run",
        f"temporal predict --model {model} --features {features} --out {predicted}",
        f"proposals candidates --probabilities {predicted} --out {candidates} --longest 5",
    ):
        assert main(words.split()) == 0
    network = load_model(model)
    with h5py.File(predicted) as file:
        found = read_probabilities(file, predicted)
        assert found.video_id == list(LENGTHS)
        assert found.steps.tolist() == list(LENGTHS.values())
        whole = [values.copy() for values in found]
        for index, values in enumerate(whole):
            np.testing.assert_array_equal(found.video(index), values)
    for name, values in zip(LENGTHS, whole, strict=True):
        total, count = np.zeros((LENGTHS[name], 3)), np.zeros((LENGTHS[name], 1))
        for other, start, length, _, part in rows:
            if other == name:
                inside = slice(start, min(start + WINDOW, length))
                total[inside] += predict_probabilities(network, part)[: inside.stop - start]
                count[inside] += 1
        np.testing.assert_allclose(values, total / count, atol=1e-6)
        np.testing.assert_array_equal(video_probabilities(predicted, name), values)
    assert video_probabilities(predicted, "nobody") is None
    with h5py.File(candidates) as file:
        offsets = file["offsets"][:]
        for index, length in enumerate(LENGTHS.values()):
            segments = file["segments"][offsets[index] : offsets[index + 1]] * length
            assert (segments[:, 1] - segments[:, 0] < 5.001).all()


def test_what_does_not_fit_is_named(tmp_path):
    path = tmp_path / "probabilities.h5"
    bare = [Prediction(np.full((steps, 3), 0.5, np.float32)) for steps in (2, 3)]
    write_probabilities(path, "x", ["a", "b"], [1.0, 1.0], ["training"] * 2, [2, 3], bare)
    with h5py.File(path, "r+") as file:
        assert file["probabilities"].shape == (5, 3)
        file["offsets"][...] = [0, 2, 4]
        with pytest.raises(InputError, match=r"offsets do not fit 2 videos"):
            read_probabilities(file, path)
        del file["offsets"]
        with pytest.raises(InputError, match=r"is not \(videos, bins, 3\)"):
            read_probabilities(file, path)
