"""What is drawn for a sample, and that it is drawn evenly."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.recognition.batches import (
    Sample,
    cut,
    evaluation_samples,
    read_sample,
    training_sample,
)
from actionspan.video.jpegs import flipped
from recognition.conftest import HEIGHT, WIDTH


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
    assert {sample.height for sample in samples} == sides
    assert {(sample.height, sample.width) for sample in samples} == {
        (one, other) for one in sides for other in sides
    }


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


def test_a_crop_of_the_inputs_size_is_cut_without_scaling(rng):
    picture = rng.integers(0, 256, (256, 340, 3), np.uint8)
    part = cut(picture, Sample(0, 0, 16, 58, 224, 224, False), 224)
    np.testing.assert_array_equal(part, picture[16:240, 58:282])


@pytest.mark.parametrize(("height", "width"), [(168, 256), (256, 168), (192, 192), (256, 256)])
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


@pytest.mark.parametrize("stream", ["rgb", "flow"])
def test_a_sample_of_a_store_is_cut_and_mirrored(store, stream):
    whole = Sample(3, 4, 0, 0, HEIGHT, WIDTH, False)
    picture = store.read(stream, 3, 4)
    part = read_sample(store, stream, Sample(3, 4, 3, 5, 24, 24, False), 24)
    np.testing.assert_array_equal(part, picture[3:27, 5:29])
    mirrored = read_sample(store, stream, Sample(3, 4, 3, 5, 24, 24, True), 24)
    np.testing.assert_array_equal(flipped(mirrored, stream), part)
    if stream == "flow":
        np.testing.assert_array_equal(mirrored[:, ::-1, 1::2], part[:, :, 1::2])
        assert (mirrored[:, ::-1, ::2].astype(int) + part[:, :, ::2] == 256).all()
    assert read_sample(store, stream, whole, 20).shape == (20, 20, store.channels[stream])
