"""What the density sees of a cell: exact values on simple curves, the same wherever it lies."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.proposals.intensity import FEATURES, cell_features

STEPS = 40
ALONG, ACROSS = np.linspace(0.03, 0.97, 12), np.linspace(-0.4, 0.4, 9)
STEPWISE = np.array([-1.5, -0.5, 0.0, 0.5, 1.5])


def parts(row):
    """Return a cell's features by name, in their order."""
    sizes = {"along": 12, "across start": 27, "across end": 27}
    sizes |= {"start by step": 15, "end by step": 15, "means": 12, "sizes": 3}
    assert sum(sizes.values()) == FEATURES == len(row)
    return dict(zip(sizes, np.split(row, np.cumsum(list(sizes.values()))[:-1]), strict=True))


def ramps():
    """Curves whose value at the middle of a step is its place in steps, times 1, 10 and 100."""
    return (np.arange(STEPS) + 0.5)[:, None] * [1.0, 10.0, 100.0]


@pytest.mark.parametrize(("start", "end"), [(10.0, 18.0), (12.25, 13.5), (15.0, 15.5)])
def test_samples_of_a_straight_line_are_their_places(start, end):
    found = parts(cell_features(ramps(), np.array([[start, end]]), 0.5)[0])
    length = end - start
    np.testing.assert_allclose(found["along"], 10 * (start + length * ALONG), rtol=1e-5)
    across = max(length, 2.5) * ACROSS
    for edge, name in ((start, "start"), (end, "end")):
        for part, places in ((f"across {name}", across), (f"{name} by step", STEPWISE)):
            expected = np.outer([1, 10, 100], edge + places)  # a curve after the other
            np.testing.assert_allclose(found[part].reshape(3, -1), expected, rtol=1e-5)
    sizes = np.log([length * 0.5, length / STEPS, length])
    np.testing.assert_allclose(found["sizes"], sizes, rtol=1e-5)


def test_means_of_regions_by_hand():
    found = parts(cell_features(ramps(), np.array([[10.0, 18.0]]), 1.0)[0])
    # inside 10…18, before 6…10, behind 18…22, middle half 12…16
    expected = np.outer([14, 8, 20, 14], [1, 10, 100]).ravel()
    np.testing.assert_allclose(found["means"], expected, rtol=1e-5)
    flat = np.zeros((STEPS, 3))
    flat[12:16, 1] = 1
    found = parts(cell_features(flat, np.array([[10.0, 18.0]]), 1.0)[0])
    np.testing.assert_allclose(found["means"].reshape(4, 3)[:, 1], [0.5, 0, 0, 1])


def test_curves_are_0_beyond_the_ends_of_the_video():
    found = parts(cell_features(np.ones((STEPS, 3)), np.array([[0.0, STEPS]]), 1.0)[0])
    by_step = [0, 0, 0.5, 1, 1]
    np.testing.assert_allclose(found["start by step"].reshape(3, 5), [by_step] * 3, atol=1e-6)
    np.testing.assert_allclose(found["end by step"].reshape(3, 5), [by_step[::-1]] * 3, atol=1e-6)
    np.testing.assert_allclose(found["means"].reshape(4, 3)[:, 0], [1, 0, 0, 1])
    np.testing.assert_allclose(found["sizes"], np.log([STEPS, 1, STEPS]), atol=1e-6)


@given(st.integers(0, 2**31), st.integers(1, 40), st.floats(30, 40), st.floats(0.3, 25))
def test_where_in_the_video_a_cell_lies_changes_nothing(seed, shift, start, length):
    curves = np.zeros((160, 3))
    curves[30:70] = np.random.default_rng(seed).random((40, 3))
    cell = np.array([[start, start + length]])
    here = cell_features(curves, cell, 0.7)
    there = cell_features(np.roll(curves, shift, axis=0), cell + shift, 0.7)
    np.testing.assert_allclose(there, here, atol=1e-5)


def test_a_cell_among_others_has_the_features_that_it_has_alone(rng):
    curves = rng.random((STEPS, 3)).astype(np.float32)
    starts = rng.random((30, 1)) * 30
    cells = np.concatenate([starts, starts + 0.5 + rng.random((30, 1)) * 9], axis=1)
    together = cell_features(curves, cells, 1.0)
    assert together.dtype == np.float32
    alone = np.concatenate([cell_features(curves, cell[None], 1.0) for cell in cells])
    np.testing.assert_array_equal(together, alone)


def test_the_shortest_video_has_features_that_are_numbers():
    assert np.isfinite(cell_features(np.ones((1, 3)), np.array([[0.0, 1.0]]), 3.0)).all()
