"""Samples are drawn evenly, and batches hold them for any number of readers and learners."""

import itertools
import threading
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.errors import InputError
from actionspan.recognition.batches import (
    Sample,
    clip_batches,
    cut,
    epoch_steps,
    evaluation_samples,
    read_sample,
    training_batches,
    training_sample,
)
from actionspan.recognition.settings import RecognitionSettings
from actionspan.video.jpegs import flipped
from recognition.conftest import HEIGHT, WIDTH

SETTINGS = RecognitionSettings(input_size=64, seed=5)
streams = pytest.mark.parametrize("stream", ["rgb", "flow"])


def sized(height=256, width=340, positions=4):
    """Stands for a store: sampling asks it for sizes alone."""
    return SimpleNamespace(
        height=height, width=width, clips=[SimpleNamespace(positions=positions)] * 3
    )


@pytest.mark.parametrize(
    ("height", "sides"), [(256, {256, 224, 192, 168}), (128, {128, 112, 96, 84})]
)
def test_crops_are_the_papers_inside_the_picture_and_all_occur(height, sides):
    store = sized(height, height * 340 // 256)
    samples = [training_sample(store, 1, 3, 0, place) for place in range(2000)]
    for sample in samples:
        assert sample.clip == 1
        assert 0 <= sample.top <= sample.top + sample.height <= height
        assert 0 <= sample.left <= sample.left + sample.width <= store.width
    pairs = {(sample.height, sample.width) for sample in samples}
    assert pairs == set(itertools.product(sides, sides))


def chi_squared(counts, cells):
    mean = sum(counts.values()) / cells
    return sum((counts[cell] - mean) ** 2 / mean for cell in counts) + (cells - len(counts)) * mean


def test_draws_are_uniform():
    """Chi-squared far below what a wrong range gives; the seeds are fixed, so no chance is left."""
    samples = [training_sample(sized(), 0, 0, 1, place) for place in range(16000)]
    positions = Counter(sample.position for sample in samples)
    sizes = Counter((sample.height, sample.width) for sample in samples)
    flips = Counter(sample.flip for sample in samples)
    assert set(positions) == {0, 1, 2, 3}
    assert chi_squared(positions, 4) < 16.3  # 0.1 % of true uniform draws are beyond
    assert chi_squared(sizes, 16) < 37.7
    assert chi_squared(flips, 2) < 10.8
    tops = Counter(sample.top for sample in samples if sample.height == 224)
    lefts = Counter(sample.left for sample in samples if sample.width == 256)
    assert (min(tops), max(tops), min(lefts), max(lefts)) == (0, 32, 0, 84)
    assert chi_squared(tops, 33) < 62.5
    assert chi_squared(lefts, 85) < 128.6


def test_draws_follow_from_seed_epoch_and_place_alone():
    def draw(*key):
        return training_sample(sized(positions=1000), 0, *key)

    assert draw(1, 2, 3) == draw(1, 2, 3)
    others = [draw(1, 2, 4), draw(1, 3, 3), draw(2, 2, 3), draw(2, 1, 3), draw(3, 2, 1)]
    assert len({draw(1, 2, 3), *others}) == 6


@pytest.mark.parametrize(
    ("positions", "count", "wanted"),
    [
        (5, 5, [0, 1, 2, 3, 4]),
        (10, 5, [1, 3, 5, 7, 9]),
        (1, 3, [0, 0, 0]),
        (2, 4, [0, 0, 1, 1]),
        (3, 5, [0, 0, 1, 2, 2]),
        (9, 1, [4]),
    ],
)
def test_evaluation_spreads_positions_evenly(positions, count, wanted):
    samples = evaluation_samples(sized(positions=positions), 2, count)
    assert [sample.position for sample in samples] == wanted
    assert {(*sample[2:], sample.clip) for sample in samples} == {(16, 58, 224, 224, False, 2)}


@given(st.integers(1, 300), st.integers(1, 60))
def test_evaluation_leaves_no_gap_wider_than_its_parts(positions, count):
    places = [s.position for s in evaluation_samples(sized(positions=positions), 0, count)]
    assert 0 <= places[0] <= places[-1] < positions
    steps = np.diff(places)
    assert (steps >= positions // count).all()
    assert (steps <= -(-positions // count)).all()
    assert places[0] <= positions / count / 2 <= places[0] + 1
    if count >= positions:
        assert set(places) == set(range(positions))


def test_the_centre_is_a_share_of_another_height():
    (sample,) = evaluation_samples(sized(128, 170), 0, 1)
    assert sample[2:] == (8, 29, 112, 112, False)


@pytest.mark.parametrize(
    ("height", "width"), [(168, 256), (256, 168), (192, 192), (224, 224), (256, 256)]
)
def test_a_crop_is_resized_whole(height, width):
    """A ramp from edge to edge of the crop runs from edge to edge of the input."""
    picture = np.full((256, 340, 2), 255, np.uint8)
    rows, columns = np.linspace(20, 220, height), np.linspace(30, 230, width)
    picture[:height, 40 : 40 + width, 0] = rows[:, None]
    picture[:height, 40 : 40 + width, 1] = columns
    part = cut(picture, Sample(0, 0, 0, 40, height, width, False), 224)
    assert part.shape == (224, 224, 2)
    assert part.flags.c_contiguous
    np.testing.assert_allclose(part[:, 7, 0], np.linspace(20, 220, 224), atol=2)
    np.testing.assert_allclose(part[9, :, 1], np.linspace(30, 230, 224), atol=2)


@streams
def test_a_sample_of_a_store_is_cut_and_mirrored(store, stream):
    picture = store.read(stream, 3, 4)
    part = read_sample(store, stream, Sample(3, 4, 3, 5, 24, 24, False), 24)
    np.testing.assert_array_equal(part, picture[3:27, 5:29])  # of the input's size: not scaled
    mirrored = read_sample(store, stream, Sample(3, 4, 3, 5, 24, 24, True), 24)
    np.testing.assert_array_equal(flipped(mirrored, stream), part)
    whole = read_sample(store, stream, Sample(3, 4, 0, 0, HEIGHT, WIDTH, False), 20)
    assert whole.shape == (20, 20, store.channels[stream])


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
@streams
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
    assert len(next(clip_batches(store, "rgb", endless, 24, 2))[0]) == 2
    assert readers_left() == []


@pytest.mark.parametrize("readers", [1, 2])
@streams
def test_each_learner_sees_its_share(store, stream, readers):
    """Clip at place i of the order is drawn with place i, whoever has it."""
    order = np.array([2, 0, 3, 1, 0, 2, 1])

    def read(*learners):
        how = (epoch_steps(7, 4), learners, 2, SETTINGS, 9, readers)
        return list(training_batches(store, stream, order, *how))

    found = read(0, 1)
    assert [count for count, _ in found] == [3, 4]
    sizes = [[len(labels) for _, labels in parts] for _, parts in found]
    assert sizes == [[1, 2], [2, 2]]
    images = np.concatenate([images for _, parts in found for images, _ in parts])
    labels = np.concatenate([labels for _, parts in found for _, labels in parts])
    for place, clip in enumerate(order.tolist()):
        sample = training_sample(store, clip, 5, 9, place)
        np.testing.assert_array_equal(images[place], read_sample(store, stream, sample, 64))
        assert labels[place] == store.clips[clip].label
    # a rank alone reads its part of what one process reads
    for (_, together), (_, [own]) in zip(found, read(1), strict=True):
        for one, other in zip(together[1], own, strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_learner_may_have_no_clip_of_a_step(store):
    how = (np.array([0, 1]), epoch_steps(2, 3), (0, 1, 2, None), 3, SETTINGS, 1)
    ((_, parts),) = training_batches(store, "rgb", *how)
    assert [len(labels) for _, labels in parts] == [0, 1, 1, 0]


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
    with pytest.raises(ValueError, match="readers is 0; it must be at least 1"):
        list(clip_batches(store, "rgb", iter([]), 24, 0))
