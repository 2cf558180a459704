"""Training and prediction with members: what a member never saw, on toy sequences."""

from dataclasses import replace

import h5py
import numpy as np
import pytest
import torch

from actionspan.annotations.tables import read_annotations, write_annotations
from actionspan.errors import InputError
from actionspan.features.store import UNSHARED, read_transform
from actionspan.storage.model_files import read_model
from actionspan.temporal import training
from actionspan.temporal.augmentation import change_speed
from actionspan.temporal.labels import COLUMNS, INSIDE, NO_PART, PART, boundary_overlaps, divide
from actionspan.temporal.networks import build_model, load_model
from actionspan.temporal.prediction import (
    predict,
    predict_parts,
    predict_probabilities,
    predict_windows,
)
from actionspan.temporal.samples import read_samples
from actionspan.temporal.settings import TemporalSettings
from actionspan.training.trainer import CHECKPOINT
from temporal.conftest import write_toy, write_toy_sequences
from temporal.test_span import of_member
from temporal.test_training import fit, read_log, same_files, stopped_in
from tiers import first_tier

SMALL = TemporalSettings(hidden=16, epochs=4, batch_size=3, dropout=0.2, members=3)


@pytest.fixture
def toy(tmp_path):
    """Eight training videos, so three steps an epoch."""
    return write_toy_sequences(tmp_path / "toy")


def fit_span(toy, out, settings=SMALL):
    return fit(toy, out, "span", settings)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a run to its end on the toy data."""
    folder = tmp_path_factory.mktemp("whole")
    fit_span(write_toy_sequences(folder / "toy"), folder)
    return folder


def samples_of(toy):
    return read_samples(toy.features, toy.annotations, SMALL, columns=COLUMNS, parts=3)


def parts_of(toy):
    return divide(toy.video_id[:8], 3)


def learned(folder):
    parts = read_model(folder / "model.safetensors").value["parts"]
    return {name: each.numpy() for name, each in parts.items()}


def test_each_batch_of_an_epoch_is_played_at_speeds_of_its_own(toy, tmp_path, monkeypatch):
    seen = []

    def recorded(features, labels, rows, settings, epoch, first):
        seen.append((epoch, first, len(labels)))
        return change_speed(features, labels, rows, settings, epoch, first)

    monkeypatch.setattr(training, "change_speed", recorded)
    wanted = replace(SMALL, epochs=2)
    still = fit_span(toy, tmp_path / "still", replace(wanted, speed=0.0))
    assert seen == []
    moved = fit_span(toy, tmp_path / "moved", wanted)
    assert seen == [(epoch, *batch) for epoch in (1, 2) for batch in ((0, 3), (3, 3), (6, 2))]
    assert not any(map(torch.equal, still.parameters(), moved.parameters()))


def test_the_networks_of_the_papers_are_trained_at_the_speed_of_the_film(tmp_path):
    toy = write_toy(tmp_path / "papers")
    one, two = (
        fit(toy, tmp_path / str(speed), "origin", replace(SMALL, epochs=2, speed=speed))
        for speed in (0.0, 0.3)
    )
    assert all(map(torch.equal, one.parameters(), two.parameters()))


def test_samples_know_the_part_of_each_training_video_and_shares_of_steps_in_regions(toy):
    samples, parts = samples_of(toy), parts_of(toy)
    found = {name: set(each) for name, each in samples.parts.items()}
    assert found == {name: {part} for name, part in parts.items()}
    assert samples.labels.shape == (11, 24, COLUMNS)
    for labels, values, known in zip(
        samples.labels, toy.array, read_annotations(toy.annotations), strict=True
    ):
        inside = values[:, 0] == 1
        np.testing.assert_array_equal(labels[:, INSIDE], inside)
        assert set(labels[inside, PART]) == {parts.get(known.video_id, NO_PART)}
        segments, steps = np.array([(one.start, one.end) for one in known.instances]), inside.sum()
        how = {"steps": steps, "rule": "bsn", "boundary_ratio": 0.1}
        shares = boundary_overlaps(segments, known.duration_seconds, **how)
        np.testing.assert_allclose(labels[:steps, :3], shares, atol=1e-6)
        np.testing.assert_array_equal(labels[steps:, :3], 0)


@pytest.mark.full
def test_it_learns_a_toy_problem(toy, tmp_path):
    settings = replace(SMALL, epochs=30, learning_rate=0.01, dropout=0.0, decay_epochs=(25,))
    fit_span(toy, tmp_path, settings)
    log = read_log(tmp_path)
    for part in ("training_action", "validation_action"):
        assert float(log[-1][part]) < float(log[0][part]) / 2


@pytest.mark.parametrize("epoch", first_tier([1, 3], 3))
def test_a_stopped_run_goes_on_to_the_same_bits(toy, whole, tmp_path, epoch):
    with stopped_in(epoch):
        fit_span(toy, tmp_path)
    assert (tmp_path / CHECKPOINT).exists() == (epoch > 1)
    fit_span(toy, tmp_path)
    assert same_files(whole, tmp_path)


def test_a_trained_member_has_the_same_bits_whatever_the_videos_of_its_part_are(
    toy, whole, tmp_path
):
    before, parts = load_model(whole / "model.safetensors"), parts_of(toy)
    held_out = [row for row, name in enumerate(toy.video_id) if parts.get(name) == 1]
    known = read_annotations(toy.annotations)
    with h5py.File(toy.features, "r+") as file:
        for row in held_out:
            noise = np.random.default_rng(row).normal(size=toy.array[row, :, 1:].shape)
            file["features"][row, :, 1:] = 3 * noise * toy.array[row, :, :1]
            known[row] = replace(known[row], instances=())
    write_annotations(toy.annotations, known)
    after = fit_span(toy, tmp_path)
    one, two = (dict(model.named_parameters()) for model in (before, after))
    for name, mask in of_member(before, 1):
        assert torch.equal(one[name][mask], two[name][mask]), name
        assert not torch.equal(one[name][~mask], two[name][~mask]), name


def test_a_training_video_is_seen_by_the_member_that_did_not_learn_it(tmp_path):
    toy = write_toy_sequences(tmp_path / "toy", longest=60)
    assert len(toy.array) > len(toy.video_id), "some videos must have windows"
    model, parts = fit_span(toy, tmp_path), parts_of(toy)
    predict(tmp_path / "model.safetensors", toy.features, tmp_path / "probabilities.h5")
    found = {name: set(each) for name, each in learned(tmp_path).items()}
    assert found == {name: {part} for name, part in parts.items()}
    with h5py.File(toy.features) as source, h5py.File(tmp_path / "probabilities.h5") as file:
        names, length = source["video_id"].asstr()[:], source["length"][:]
        starts, offsets = source["first_step"][:], file["offsets"][:]
        for place, name in enumerate(toy.video_id):
            rows = np.flatnonzero(names == name)
            windows = (toy.array[rows], starts[rows], int(length[rows[0]]))
            found = file["probabilities"][offsets[place] : offsets[place + 1]]
            expected = by_all = predict_windows(model, *windows).probabilities
            if name in parts:
                expected = predict_windows(model, *windows, parts[name]).probabilities
            np.testing.assert_array_equal(found, expected)
            assert np.array_equal(found, by_all) == (name not in parts)


def test_what_a_network_with_members_does_not_take_is_one_line(toy, whole, tmp_path):
    """A video of another length, a file of other features; a part, where there are no members."""
    with pytest.raises(InputError, match=r"causal\.h5"):
        fit(toy, tmp_path / "stream", "stream", SMALL)
    with h5py.File(toy.features, "r+") as file:
        file["length"][0] -= 1
    with pytest.raises(InputError, match=r"video video_000: \d+ steps, but the model learned \d+"):
        predict(whole / "model.safetensors", toy.features, tmp_path / "probabilities.h5")
    with h5py.File(toy.features, "r+") as file:
        file["length"][0] += 1
        file["transform/past/horizon"] = 8
    with pytest.raises(InputError, match=r"sequences\.h5"):
        fit_span(toy, tmp_path / "span")
    with h5py.File(toy.features, "r+") as file:
        del file["transform"]
    with pytest.raises(InputError, match=r"learns from sequences.h5, which `features sequences`"):
        fit_span(toy, tmp_path / "out")
    with pytest.raises(ValueError, match="not cross-fitted"):
        predict_probabilities(build_model("mtn", 6, SMALL).eval(), toy.array[0], 1)


def test_with_fewer_videos_than_parts_some_members_learn_all(tmp_path):
    fit_span(write_toy_sequences(tmp_path / "toy", training=2), tmp_path)
    assert sorted(int(each[0]) for each in learned(tmp_path).values()) == [0, 1]


def test_of_footage_that_videos_share_the_members_learn_all_or_nothing(toy, tmp_path):
    """Steps 2 to 7 of two videos of different parts show the same."""
    parts = parts_of(toy)
    one, two = 0, next(row for row in range(8) if parts[toy.video_id[row]] != parts["video_000"])
    with h5py.File(toy.features, "r+") as file:
        footage = np.full(file["features"].shape[:2], UNSHARED, np.int32)
        footage[[one, two], 2:8] = 5
        file["footage"] = footage
    samples, transform = samples_of(toy), read_transform(toy.features)
    model = fit_span(toy, tmp_path)
    predict(tmp_path / "model.safetensors", toy.features, tmp_path / "probabilities.h5")
    with h5py.File(tmp_path / "probabilities.h5") as file:
        offsets, probabilities, of_file = (
            file[name][:] for name in ("offsets", "probabilities", "parts")
        )
    for row, name in enumerate(toy.video_id[:8]):
        sequence, of_step = toy.array[row][toy.array[row, :, 0] == 1], learned(tmp_path)[name]
        outside = np.ones(len(sequence), bool)
        outside[2:8] = row not in (one, two)
        assert set(of_step[outside]) == {parts[name]}
        np.testing.assert_array_equal(samples.labels[row, : len(sequence), PART], of_step)
        own = slice(offsets[row + 1] - len(sequence), offsets[row + 1])
        np.testing.assert_array_equal(of_file[own], of_step)
        for part in set(of_step):
            # a part is seen as if nothing else were in the video
            own_part = of_step == part
            alone = sequence[own_part], np.full(own_part.sum(), part)
            rest = predict_parts(model, *alone, transform).probabilities
            np.testing.assert_array_equal(probabilities[own][own_part], rest)
    names = toy.video_id[one], toy.video_id[two]
    (first,), (second,) = (set(learned(tmp_path)[name][2:8].tolist()) for name in names)
    assert first == second
    assert first in {parts[name] for name in names}
