"""BSP features: closed forms of constant and linear actionness, padding, the slow version."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from actionspan.proposals import bsp_features
from actionspan.proposals.pgm import PLACES
from proposals import oracle


def test_constant_actionness_is_constant_inside_the_video():
    features = bsp_features(np.full(100, 0.25), [[0.3, 0.6], [0.405, 0.415]])
    assert features.shape == (2, 32)
    assert features.dtype == np.float32
    np.testing.assert_allclose(features, 0.25, rtol=1e-6)


def test_linear_actionness_gives_the_grid_points():
    """Four finer points lie evenly round a grid point, so that a line's mean is its value there."""
    centres = (np.arange(100) + 0.5) / 100
    start, end = 0.4, 0.6
    expected = np.concatenate(
        [np.linspace(0.4, 0.6, 16), np.linspace(0.36, 0.44, 8), np.linspace(0.56, 0.64, 8)]
    )
    np.testing.assert_allclose(bsp_features(centres, [[start, end]])[0], expected, rtol=1e-6)


def test_places_reach_a_fifth_round_each_boundary():
    points = PLACES.mean(axis=0)
    np.testing.assert_allclose(points[[0, 15]], [0, 1], atol=1e-12)
    np.testing.assert_allclose(points[[16, 23]], [-0.2, 0.2], atol=1e-12)
    np.testing.assert_allclose(points[[24, 31]], [0.8, 1.2], atol=1e-12)
    np.testing.assert_allclose(np.diff(PLACES[:, 3]), (1 / 15) / 3)  # a third of a grid step


def test_zero_outside_the_video():
    features = bsp_features(np.ones(100), [[0.005, 0.995]])[0]
    half_step = 0.99 * 0.4 / 7 / 2
    outside = 0.005 + 0.99 * np.linspace(-0.2, 0.2, 8) + half_step < -0.005
    assert outside.sum() == 3
    assert (features[16:24][outside] == 0).all()
    assert (features[24:][outside[::-1]] == 0).all()
    assert (features[2:14] == 1).all()


def test_falls_to_zero_over_one_bin_beyond_the_end():
    """The finer points of the last value lie at 1 bin ± fractions round the last bin's centre."""
    features = bsp_features([0.0, 1.0], [[0.25, 0.75]])[0]
    step = 1 / 15  # in bins
    finer = np.array([-1 / 2, -1 / 6, 1 / 6, 1 / 2]) * step
    assert features[15] == pytest.approx(np.mean(1 - np.abs(finer)), rel=1e-6)


def test_features_of_mirrored_actionness_are_mirrored():
    actionness = np.random.default_rng(0).random(100)
    one = bsp_features(actionness, [[0.215, 0.845]])[0]
    two = bsp_features(actionness[::-1], [[1 - 0.845, 1 - 0.215]])[0]
    np.testing.assert_allclose(one[:16], two[:16][::-1], rtol=1e-5)
    np.testing.assert_allclose(one[16:], two[16:][::-1], rtol=1e-5)


@given(
    hnp.arrays(np.float64, st.integers(1, 20), elements=st.floats(0, 1)),
    st.lists(
        st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted).filter(lambda s: s[0] < s[1]),
        min_size=1,
        max_size=3,
    ),
)
def test_equal_to_the_slow_one(actionness, segments):
    slow = [oracle.bsp(actionness.tolist(), segment) for segment in segments]
    np.testing.assert_allclose(bsp_features(actionness, segments), slow, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("bins", "count"), [(1, 3), (2, 20), (100, 1001)])
def test_equal_to_the_bit_to_each_finer_point_by_itself(bins, count):
    rng = np.random.default_rng(bins)
    actionness, segments = rng.random(bins), np.sort(rng.random((count, 2)), axis=1)
    segments[:3] = [[0, 1], [0, 0.5 / bins], [1 - 0.5 / bins, 1]]
    padded = np.concatenate([[0.0], actionness, [0.0, 0.0]])
    start, end = (segments * bins + 0.5)[..., None].swapaxes(0, 1)
    total = np.zeros((count, 32))
    for places in PLACES:
        place = np.clip(start + (end - start) * places, 0, bins + 1)
        before = place.astype(int)
        total += (place - before) * np.diff(padded)[before] + padded[before]
    assert (bsp_features(actionness, segments) == (total / 4).astype(np.float32)).all()


def test_a_candidate_does_not_depend_on_the_others():
    rng = np.random.default_rng(0)
    actionness = rng.random(100)
    segments = np.sort(rng.random((50, 2)), axis=1)
    together = bsp_features(actionness, segments)
    alone = np.concatenate([bsp_features(actionness, segment[None]) for segment in segments])
    assert (together == alone).all()


def test_no_candidates():
    assert bsp_features(np.ones(100), np.zeros((0, 2))).shape == (0, 32)
