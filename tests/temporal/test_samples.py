"""What training reads: rows by memory map, labels by id, and the errors of both."""

from dataclasses import replace
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
import torch

from actionspan.annotations.tables import read_annotations, write_annotations
from actionspan.errors import InputError
from actionspan.features.store import open_features, write_checked
from actionspan.storage.checksums import append_checksums
from actionspan.temporal.labels import boundary_labels
from actionspan.temporal.samples import batches, epoch_order, read_samples
from actionspan.temporal.settings import TemporalSettings


def read(toy, **settings):
    return read_samples(toy.features, toy.annotations, TemporalSettings(**settings))


def nudge(toy):
    with h5py.File(toy.features, "r+") as file:
        file["features"][0, 0, 0] += 1


def check(toy, words):
    """Write what a writer of features does."""
    with h5py.File(toy.features, "r+") as file:
        write_checked(file, words)
    append_checksums(toy.features)


def test_rows_labels_and_subsets_belong_together(toy):
    samples = read(toy)
    assert samples.training.tolist() == list(range(8))
    assert samples.validation.tolist() == list(range(8, 12))
    for row, annotation in enumerate(read_annotations(toy.annotations)):
        segments = np.array([(one.start, one.end) for one in annotation.instances])
        expected = boundary_labels(segments, annotation.duration_seconds)
        np.testing.assert_array_equal(samples.labels[row], expected)


def test_the_order_of_the_annotations_file_does_not_matter(toy):
    before = read(toy)
    write_annotations(toy.annotations, read_annotations(toy.annotations)[::-1])
    after = read(toy)
    np.testing.assert_array_equal(before.labels, after.labels)
    assert before.fingerprint == after.fingerprint


class OnlyRows:
    """An array that hands out a few rows at a time and counts them; whole, it is not to be had."""

    def __init__(self, array):
        self.array, self.shape, self.most = array, array.shape, 0

    def __getitem__(self, rows):
        assert isinstance(rows, np.ndarray)
        self.most = max(self.most, len(rows))
        return self.array[rows]


def test_the_features_stay_on_disk_and_a_batch_reads_its_own_rows_alone(toy):
    samples = read(toy)
    assert isinstance(samples.features, np.memmap)
    rows = OnlyRows(samples.features)
    object.__setattr__(samples, "features", rows)
    found = batches(samples, np.array([3, 0, 7, 5, 2]), 2)
    for (features, labels, _), chosen in zip(found, ([3, 0], [7, 5], [2]), strict=True):
        np.testing.assert_array_equal(features.numpy(), toy.array[chosen])
        np.testing.assert_array_equal(labels.numpy(), samples.labels[chosen])
    assert rows.most == 2


def test_ranks_read_their_own_rows_of_a_batch_and_all_its_labels(toy):
    samples = read(toy)
    rows = np.array([3, 0, 7, 5, 2, 1, 4])
    shares = [
        list(batches(samples, rows, 5, lambda n, k=k: slice(n * k // 3, n * (k + 1) // 3)))
        for k in range(3)
    ]
    assert [[len(features) for features, *_ in one] for one in shares] == [[1, 0], [2, 1], [2, 1]]
    for number, whole in enumerate(batches(samples, rows, 5)):
        parts = [one[number] for one in shares]
        assert torch.equal(torch.cat([part[0] for part in parts]), whole[0])
        for features, labels, share in parts:
            assert torch.equal(labels, whole[1])
            assert torch.equal(whole[0][share], features)


def test_each_epoch_has_an_order_of_its_own_that_the_seed_decides():
    rows = np.arange(50, 90)
    first, second = epoch_order(rows, 1, 1), epoch_order(rows, 1, 2)
    assert sorted(first.tolist()) == sorted(second.tolist()) == rows.tolist()
    assert first.tolist() != second.tolist()
    assert first.tolist() == epoch_order(rows, 1, 1).tolist()
    assert first.tolist() != epoch_order(rows, 2, 1).tolist()


def test_no_training_video_is_one_line(make_toy):
    toy = make_toy("none", training=0)
    with pytest.raises(InputError, match=r"features.h5: no video of subset 'training' among 4"):
        read(toy)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_features_that_are_no_numbers_name_the_video(toy, value):
    with h5py.File(toy.features, "r+") as file:
        file["features"][10, 42, 3] = value
    with pytest.raises(InputError, match=r"features.h5: .*video_010, step 42: NaN or infinity"):
        read(toy)


def test_a_video_without_annotations_is_named(toy):
    write_annotations(toy.annotations, read_annotations(toy.annotations)[1:])
    with pytest.raises(InputError, match=r"annotations.json: video video_000 has features but no"):
        read(toy)


def test_annotations_without_features_are_left_out_with_a_line(toy, capsys):
    known = read_annotations(toy.annotations)
    test = replace(known[0], video_id="a_test_video", subset="testing")  # does not count
    write_annotations(toy.annotations, [test, *known, replace(known[0], video_id="video_001b")])
    with h5py.File(toy.features, "r+") as file:
        file["subset"][...] = ["training"] * 5 + ["validation"] * 7
        file["video_id"][0] = "video_001b"
    assert len(read(toy).training) == 5
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "1 annotated videos have no features and are left out, the first video_000" in error


def test_features_that_their_writer_checked_are_not_read_at_the_start(toy, monkeypatch):
    """The fingerprint still changes with each of them, with the rows and with the labels."""
    found = [read(toy).fingerprint, read(toy, labels="mtn").fingerprint]
    nudge(toy)
    found.append(read(toy).fingerprint)
    check(toy, "one")

    def unread(path):
        features = open_features(path)
        return replace(features, array=SimpleNamespace(shape=features.array.shape))

    with monkeypatch.context() as patch:
        patch.setattr("actionspan.temporal.samples.open_features", unread)
        first, again, other = read(toy), read(toy), read(toy, labels="mtn")
    assert first.fingerprint == again.fingerprint
    found += [first.fingerprint, other.fingerprint]
    for _ in range(2):  # by others, so that the note is out of date
        nudge(toy)
        found.append(read(toy).fingerprint)
    check(toy, "two")
    found.append(read(toy).fingerprint)
    assert len(set(found)) == len(found)
