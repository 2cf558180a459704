"""Training and prediction with members: what a member never saw, on toy sequences."""

from dataclasses import replace

import h5py
import numpy as np
import pytest
import torch

from actionspan.dataset.tables import read_annotations, write_annotations
from actionspan.errors import InputError
from actionspan.features.store import UNSHARED, read_transform
from actionspan.temporal import load_model, training
from actionspan.temporal.augmentation import change_speed
from actionspan.temporal.labels import COLUMNS, INSIDE, NO_PART, PART, boundary_overlaps, divide
from actionspan.temporal.networks import build_model
from actionspan.temporal.prediction import (
    predict,
    predict_parts,
    predict_probabilities,
    predict_windows,
)
from actionspan.temporal.samples import read_samples
from actionspan.temporal.settings import TemporalSettings
from actionspan.temporal.training import train
from actionspan.training.fit import CHECKPOINT
from temporal.conftest import write_toy, write_toy_sequences
from temporal.test_span import of_member
from temporal.test_training import read_log, same_files, stop_in_epoch
from tiers import first_tier

SMALL = TemporalSettings(hidden=16, epochs=4, batch_size=3, dropout=0.2, members=3)


@pytest.fixture
def toy(tmp_path):
    """Eight training videos, so three steps an epoch."""
    return write_toy_sequences(tmp_path / "toy")


def train_span(toy, out, settings=SMALL):
    train(toy.features, toy.annotations, "span", settings, out)
    return load_model(out / "model.pt")


def test_each_batch_of_an_epoch_is_played_at_speeds_of_its_own(toy, tmp_path, monkeypatch):
    seen = []

    def recorded(features, labels, rows, settings, epoch, first):
        seen.append((epoch, first, len(labels)))
        return change_speed(features, labels, rows, settings, epoch, first)

    monkeypatch.setattr(training, "change_speed", recorded)
    wanted = replace(SMALL, epochs=2)
    still = train_span(toy, tmp_path / "still", replace(wanted, speed=0.0))
    assert seen == []
    moved = train_span(toy, tmp_path / "moved", wanted)
    assert seen == [(epoch, *batch) for epoch in (1, 2) for batch in ((0, 3), (3, 3), (6, 2))]
    weights = zip(still.parameters(), moved.parameters(), strict=True)
    assert not any(torch.equal(one, two) for one, two in weights)


def test_the_networks_of_the_papers_are_trained_at_the_speed_of_the_film(tmp_path):
    toy = write_toy(tmp_path / "papers")
    for speed in (0.0, 0.3):
        settings = replace(SMALL, epochs=2, speed=speed)
        train(toy.features, toy.annotations, "origin", settings, tmp_path / str(speed))
    one, two = (load_model(tmp_path / name / "model.pt").parameters() for name in ("0.0", "0.3"))
    assert all(map(torch.equal, one, two))


def test_samples_know_the_part_of_each_training_video(toy):
    samples = read_samples(toy.features, toy.annotations, SMALL, columns=COLUMNS, parts=3)
    parts = divide(toy.video_id[:8], 3)
    assert {name: set(each) for name, each in samples.parts.items()} == {
        name: {part} for name, part in parts.items()
    }
    assert samples.labels.shape == (11, 24, COLUMNS)
    for row, name in enumerate(toy.video_id):
        inside = toy.array[row, :, 0] == 1
        np.testing.assert_array_equal(samples.labels[row, :, INSIDE], inside)
        part = parts.get(name, NO_PART)
        assert set(samples.labels[row, inside, PART]) == {part}


def test_labels_are_the_shares_of_steps_in_regions(toy):
    samples = read_samples(toy.features, toy.annotations, SMALL, columns=COLUMNS, parts=3)
    for row, known in enumerate(read_annotations(toy.annotations)):
        segments = np.array([(one.start, one.end) for one in known.instances])
        steps = int(toy.array[row, :, 0].sum())
        shares = boundary_overlaps(
            segments, known.duration_seconds, steps=steps, rule="bsn", boundary_ratio=0.1
        )
        np.testing.assert_allclose(samples.labels[row, :steps, :3], shares, atol=1e-6)
        np.testing.assert_array_equal(samples.labels[row, steps:, :3], 0)


def test_it_learns_a_toy_problem(toy, tmp_path):
    settings = replace(SMALL, epochs=30, learning_rate=0.01, dropout=0.0, decay_epochs=(25,))
    train_span(toy, tmp_path / "out", settings)
    log = read_log(tmp_path / "out")
    for part in ("training_action", "validation_action"):
        assert float(log[-1][part]) < float(log[0][part]) / 2


@pytest.mark.parametrize("epoch", first_tier([1, 3], 3))
def test_a_stopped_run_goes_on_to_the_same_bits(toy, tmp_path, monkeypatch, epoch):
    train_span(toy, tmp_path / "whole")
    with monkeypatch.context() as patch:
        stop_in_epoch(patch, epoch)
        with pytest.raises(KeyboardInterrupt):
            train_span(toy, tmp_path / "stopped")
    assert (tmp_path / "stopped" / CHECKPOINT).exists() == (epoch > 1)
    train_span(toy, tmp_path / "stopped")
    assert same_files(tmp_path / "whole", tmp_path / "stopped")


def test_a_trained_member_has_the_same_bits_whatever_the_videos_of_its_part_are(toy, tmp_path):
    before = train_span(toy, tmp_path / "before")
    parts = divide(toy.video_id[:8], 3)
    held_out = [row for row, name in enumerate(toy.video_id) if parts.get(name) == 1]
    with h5py.File(toy.features, "r+") as file:
        for row in held_out:
            inside = toy.array[row, :, :1]
            noise = np.random.default_rng(row).normal(size=toy.array[row, :, 1:].shape)
            file["features"][row, :, 1:] = 3 * noise * inside
    known = read_annotations(toy.annotations)
    moved = [
        replace(one, instances=()) if row in held_out else one for row, one in enumerate(known)
    ]
    write_annotations(toy.annotations, moved)
    after = train_span(toy, tmp_path / "after")
    weights = [dict(model.named_parameters()) for model in (before, after)]
    for name, mask in of_member(before, 1):
        assert torch.equal(weights[0][name][mask], weights[1][name][mask]), name
        assert not torch.equal(weights[0][name][~mask], weights[1][name][~mask]), name


def test_a_training_video_is_seen_by_the_member_that_did_not_learn_it(tmp_path):
    toy = write_toy_sequences(tmp_path / "toy", longest=60)
    assert len(toy.array) > len(toy.video_id), "some videos must have windows"
    model = train_span(toy, tmp_path)
    predict(tmp_path / "model.pt", toy.features, tmp_path / "probabilities.h5")
    parts = divide(toy.video_id[:8], 3)
    learned = torch.load(tmp_path / "model.pt", weights_only=True)["parts"]
    assert {name: set(each.tolist()) for name, each in learned.items()} == {
        name: {part} for name, part in parts.items()
    }
    with h5py.File(toy.features) as source, h5py.File(tmp_path / "probabilities.h5") as file:
        names, length = source["video_id"].asstr()[:], source["length"][:]
        starts, offsets = source["first_step"][:], file["offsets"][:]
        for place, name in enumerate(toy.video_id):
            rows = np.flatnonzero(names == name)
            windows = (toy.array[rows], starts[rows], int(length[rows[0]]))
            found = file["probabilities"][offsets[place] : offsets[place + 1]]
            by_all = predict_windows(model, *windows).probabilities
            expected = by_all
            if name in parts:
                expected = predict_windows(model, *windows, parts[name]).probabilities
            np.testing.assert_array_equal(found, expected)
            assert np.array_equal(found, by_all) == (name not in parts)


def test_a_video_of_another_length_is_one_line(toy, tmp_path):
    train_span(toy, tmp_path)
    with h5py.File(toy.features, "r+") as file:
        file["length"][0] -= 1
    with pytest.raises(InputError, match=r"video video_000: \d+ steps, but the model learned \d+"):
        predict(tmp_path / "model.pt", toy.features, tmp_path / "probabilities.h5")


def test_a_part_is_nothing_to_a_network_without_members(toy):
    mtn = build_model("mtn", 6, SMALL).eval()
    with pytest.raises(ValueError, match="not cross-fitted"):
        predict_probabilities(mtn, toy.array[0], 1)


def test_features_of_a_fixed_number_of_steps_are_refused(toy, tmp_path):
    with h5py.File(toy.features, "r+") as file:
        del file["transform"]
    with pytest.raises(InputError, match=r"learns from sequences.h5, which `features sequences`"):
        train_span(toy, tmp_path / "out")


def test_with_fewer_videos_than_parts_some_members_learn_all(tmp_path):
    toy = write_toy_sequences(tmp_path / "toy", training=2)
    train_span(toy, tmp_path / "out")
    parts = torch.load(tmp_path / "out/model.pt", weights_only=True)["parts"]
    assert sorted(int(each[0]) for each in parts.values()) == [0, 1]


def test_of_footage_that_videos_share_the_members_learn_all_or_nothing(tmp_path):
    """Steps 2 to 7 of two videos of different parts show the same."""
    toy = write_toy_sequences(tmp_path / "toy")
    parts = divide(toy.video_id[:8], 3)
    one, two = 0, next(row for row in range(8) if parts[toy.video_id[row]] != parts["video_000"])
    with h5py.File(toy.features, "r+") as file:
        footage = np.full(file["features"].shape[:2], UNSHARED, np.int32)
        footage[[one, two], 2:8] = 5
        file["footage"] = footage
    samples = read_samples(toy.features, toy.annotations, SMALL, columns=COLUMNS, parts=3)
    model = train_span(toy, tmp_path)
    predict(tmp_path / "model.pt", toy.features, tmp_path / "probabilities.h5")
    learned = torch.load(tmp_path / "model.pt", weights_only=True)["parts"]
    transform = read_transform(toy.features)
    for row, name in enumerate(toy.video_id[:8]):
        sequence = toy.array[row][toy.array[row, :, 0] == 1]
        of_step = learned[name].numpy()
        outside = np.ones(len(sequence), bool)
        outside[2:8] = row not in (one, two)
        assert set(of_step[outside]) == {parts[name]}
        np.testing.assert_array_equal(samples.labels[row, : len(sequence), PART], of_step)
        with h5py.File(tmp_path / "probabilities.h5") as file:
            after = int(file["offsets"][row + 1])
            found = file["probabilities"][after - len(sequence) : after]
            np.testing.assert_array_equal(file["parts"][after - len(sequence) : after], of_step)
        for part in set(of_step):
            # a part is seen as if nothing else were in the video
            rest = predict_parts(
                model, sequence[of_step == part], np.full((of_step == part).sum(), part), transform
            )
            np.testing.assert_array_equal(found[of_step == part], rest.probabilities)
    shared = {
        name: set(learned[name][2:8].tolist()) for name in (toy.video_id[one], toy.video_id[two])
    }
    (first,), (second,) = shared.values()
    assert first == second
    assert first in {parts[name] for name in shared}


def test_span_and_stream_learn_from_files_of_their_own(toy, tmp_path):
    with pytest.raises(InputError, match=r"causal\.h5"):
        train(toy.features, toy.annotations, "stream", SMALL, tmp_path / "stream")
    with h5py.File(toy.features, "a") as file:
        file["transform/past/horizon"] = 8
    with pytest.raises(InputError, match=r"sequences\.h5"):
        train(toy.features, toy.annotations, "span", SMALL, tmp_path / "span")
