"""Batches hold what their samples say, for any number of readers and learners."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.errors import InputError
from actionspan.recognition.batches import (
    clip_batches,
    epoch_steps,
    evaluation_samples,
    read_sample,
    training_batches,
    training_sample,
)
from actionspan.recognition.settings import RecognitionSettings

SETTINGS = RecognitionSettings(input_size=64, seed=5)


def readers_left():
    return [t.name for t in threading.enumerate() if t.name.startswith(("reader", "prefetched"))]


@given(st.integers(0, 500), st.integers(1, 100))
def test_steps_take_every_clip_once_and_are_alike(clips, size):
    steps = epoch_steps(clips, size)
    assert [place for step in steps for place in range(step.start, step.stop)] == list(range(clips))
    lengths = [step.stop - step.start for step in steps]
    assert len(lengths) == -(-clips // size)
    assert not lengths or size >= max(lengths) <= min(lengths) + 1


@pytest.mark.parametrize("readers", [1, 3])
@pytest.mark.parametrize("stream", ["rgb", "flow"])
def test_batches_of_samples_are_the_samples(store, stream, readers):
    batches = [evaluation_samples(store, clip, 1 + clip) for clip in range(4)]
    found = list(clip_batches(store, stream, iter(batches), 24, readers))
    assert len(found) == 4
    for clip, (pictures, labels) in enumerate(found):
        wanted = [read_sample(store, stream, sample, 24) for sample in batches[clip]]
        np.testing.assert_array_equal(pictures, np.stack(wanted))
        assert labels.tolist() == [store.clips[clip].label] * (1 + clip)
    assert readers_left() == []


def test_a_loop_left_early_leaves_no_thread(store):
    endless = iter(lambda: evaluation_samples(store, 0, 2), None)
    for pictures, _ in clip_batches(store, "rgb", endless, 24, 2):
        assert len(pictures) == 2
        break
    assert readers_left() == []


@pytest.mark.parametrize("readers", [1, 2])
@pytest.mark.parametrize("stream", ["rgb", "flow"])
def test_each_learner_sees_its_share(store, stream, readers):
    """Clip at place i of the order is drawn with place i, whoever has it."""
    order = np.array([2, 0, 3, 1, 0, 2, 1])
    steps = epoch_steps(7, 4)

    def shares(count):
        return [slice(0, count // 2), slice(count // 2, count)]

    found = list(training_batches(store, stream, order, steps, shares, SETTINGS, 9, readers))
    assert [count for count, _ in found] == [3, 4]
    sizes = [[len(labels) for _, labels in parts] for _, parts in found]
    assert sizes == [[1, 2], [2, 2]]
    images = np.concatenate([images for _, parts in found for images, _ in parts])
    labels = np.concatenate([labels for _, parts in found for _, labels in parts])
    for place, clip in enumerate(order.tolist()):
        sample = training_sample(store, clip, 5, 9, place)
        np.testing.assert_array_equal(images[place], read_sample(store, stream, sample, 64))
        assert labels[place] == store.clips[clip].label


def test_a_rank_alone_reads_its_part_of_what_one_process_reads(store):
    order, steps = np.array([0, 1, 2, 3, 2]), epoch_steps(5, 3)

    def of(*learners):
        def shares(count):
            return [slice(learner, count, 3) for learner in learners]

        found = training_batches(store, "rgb", order, steps, shares, SETTINGS, 1)
        return [parts for _, parts in found]

    together, alone = of(0, 1, 2), of(1)
    assert [len(labels) for _, labels in together[0]] == [1, 1, 0]
    for all_of_them, [own] in zip(together, alone, strict=True):
        for one, other in zip(all_of_them[1], own, strict=True):
            np.testing.assert_array_equal(one, other)


def test_damage_is_reported_where_the_batch_would_have_come(store, monkeypatch):
    good, bad = evaluation_samples(store, 0, 1), evaluation_samples(store, 1, 1)
    read = store.read

    def damaged(stream, clip, position):
        if clip == 1:
            raise InputError("clip b is damaged")
        return read(stream, clip, position)

    monkeypatch.setattr(store, "read", damaged)
    batches = clip_batches(store, "rgb", iter([good, bad]), 24, 2)
    assert len(next(batches)[1]) == 1
    with pytest.raises(InputError, match="clip b is damaged"):
        next(batches)
    assert readers_left() == []


def test_no_reader_is_refused(store):
    with pytest.raises(ValueError, match="readers is 0: at least 1"):
        list(clip_batches(store, "rgb", iter([]), 24, 0))
