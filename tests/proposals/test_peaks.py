"""Segments between peaks of the boundary curves, by hand and against all pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.proposals.intensity import peak_pairs, peaks


def test_a_peak_lies_inside_its_step():
    places, heights = peaks(np.array([0.0, 0.5, 0.5, 0.0, 0.2, 0.6, 0.2, 0.0, 0.1, 0.3]))
    # a boundary at the edge of two steps, in the middle of a step, and at the end of the video
    assert places == pytest.approx([2.0, 5.5, 9.25])
    assert heights.tolist() == [0.5, 0.6, 0.3]


def test_a_share_of_a_step_moves_the_peak_by_it():
    """A region of one step that begins at 3.25 covers three quarters of step 3, a quarter of 4."""
    places, _ = peaks(np.array([0, 0, 0, 0.75, 0.25, 0]))
    assert places == pytest.approx([3.75])


@given(st.integers(0, 2**31), st.integers(1, 25), st.integers(0, 40))
def test_the_best_pairs_of_an_allowed_length_are_kept(seed, steps, most):
    random = np.random.default_rng(seed)
    curves = random.random((steps, 3)).astype(np.float32)
    shortest, longest = sorted(random.uniform(0, steps, 2).tolist())
    pairs = peak_pairs(curves, shortest, longest, most)
    (starts, first), (ends, second) = (peaks(curves[:, kind].astype(float)) for kind in (0, 2))
    everything = {
        (start, end): one * two
        for start, one in zip(starts.tolist(), first.tolist(), strict=True)
        for end, two in zip(ends.tolist(), second.tolist(), strict=True)
        if shortest <= end - start <= longest
    }
    found = [everything[tuple(pair)] for pair in pairs.tolist()]
    assert found == sorted(everything.values(), reverse=True)[:most]
    assert len({tuple(pair) for pair in pairs.tolist()}) == len(pairs)


def test_flat_curves_have_no_peak():
    assert peak_pairs(np.zeros((9, 3)), 1, 9, 10).shape == (0, 2)
    assert peak_pairs(np.full((9, 3), 0.5), 1, 9, 10).shape == (0, 2)
    assert peak_pairs(np.full((1, 3), 0.5), 0, 9, 10).shape == (1, 2)
