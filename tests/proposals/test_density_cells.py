"""Cells of the density: the lattice, pairs of peaks, and what the density sees of a cell."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.arrays import temporal_iou
from actionspan.proposals.intensity import FEATURES, cell_features
from actionspan.proposals.lattice import Lengths, lattice, peak_pairs, peaks, usual_lengths
from actionspan.proposals.settings import LatticeSettings


def least_overlap(settings: LatticeSettings) -> float:
    """Return what the nearest cell overlaps any segment by at least.

    There is a length l within a factor √ratio of the segment's L, and a cell of it whose middle is
    at most l · stride / 2 away. If one contains the other the tIoU is that of the lengths, at least
    1 / √ratio. If not it is ((l + L) / 2 - d) / ((l + L) / 2 + d), and d / ((l + L) / 2) is at most
    stride · √ratio / (1 + √ratio). Near an end of the video the cell there contains the segment.
    """
    root = math.sqrt(settings.ratio)
    apart = settings.stride * root / (1 + root)
    return min(1 / root, (1 - apart) / (1 + apart))


SETTINGS = st.builds(LatticeSettings, ratio=st.floats(1.05, 2.0), stride=st.floats(0.05, 1.0))
SHARE = st.floats(0, 1)


@given(st.integers(1, 120), st.floats(0.1, 200), st.floats(0.1, 200), SHARE, SHARE, SETTINGS)
def test_every_segment_has_a_cell_near_it_and_cells_lie_in_the_video(
    steps, one, two, size, place, settings
):
    shortest, longest = sorted((one, two))
    cells = lattice(steps, shortest, longest, settings)
    assert (cells >= 0).all()
    assert (cells <= steps + 1e-9).all()
    lengths = cells[:, 1] - cells[:, 0]
    assert (np.diff(lengths) >= -1e-9).all()
    low, high = (min(max(length, 1), steps) for length in (shortest, longest))
    assert lengths[[0, -1]] == pytest.approx([low, high])
    # each length from the start of the video to its end
    for length in np.unique(lengths.round(9)):
        own = cells[np.isclose(lengths, length)]
        assert own[:, 0].min() == pytest.approx(0, abs=1e-9)
        assert own[:, 1].max() == pytest.approx(steps)
    length = low + size * (high - low)
    start = place * (steps - length)
    best = temporal_iou(cells, [(start, start + length)]).max()
    assert best >= least_overlap(settings) - 1e-9


def test_cells_grow_with_the_length_of_the_video_not_its_square():
    counts = [len(lattice(steps, 5, 50, LatticeSettings())) for steps in (1000, 2000, 4000)]
    assert counts[1] / counts[0] == pytest.approx(2, rel=0.05)
    assert counts[2] / counts[1] == pytest.approx(2, rel=0.05)
    lengths = math.ceil(math.log(10) / math.log(1.15)) + 1
    assert counts[0] <= sum(1000 / (0.125 * 5 * 1.15**k) + 2 for k in range(lengths))


def test_the_usual_lengths_leave_out_the_most_unusual():
    given_ = np.concatenate([np.linspace(2, 4, 1001), [0.01, 900.0], np.zeros(5)])
    lengths = usual_lengths(given_)
    assert isinstance(lengths, Lengths)
    low, high = np.quantile(given_[given_ > 0], (0.01, 0.99))
    assert lengths == pytest.approx((0.5 * low, 2 * high))
    assert lengths.longest < 9
    assert usual_lengths([3.0]) == pytest.approx((1.5, 6.0))
    with pytest.raises(ValueError, match="no instance has a length"):
        usual_lengths([0.0])


def test_a_peak_lies_inside_its_step():
    places, heights = peaks(np.array([0.0, 0.5, 0.5, 0.0, 0.2, 0.6, 0.2, 0.0, 0.1, 0.3]))
    # a boundary at the edge of two steps, in the middle of a step, and at the end of the video
    assert places == pytest.approx([2.0, 5.5, 9.25])
    assert heights.tolist() == [0.5, 0.6, 0.3]
    # a region of one step that begins at 3.25 covers three quarters of step 3, a quarter of 4
    assert peaks(np.array([0, 0, 0, 0.75, 0.25, 0]))[0] == pytest.approx([3.75])
    flat = (np.zeros((9, 3)), 1, 0), (np.full((9, 3), 0.5), 1, 0), (np.full((1, 3), 0.5), 0, 1)
    for curves, shortest, count in flat:
        assert peak_pairs(curves, shortest, 9, 10).shape == (count, 2)


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


STEPS = 40
ALONG, ACROSS = np.linspace(0.03, 0.97, 12), np.linspace(-0.4, 0.4, 9)
STEPWISE = np.array([-1.5, -0.5, 0.0, 0.5, 1.5])


def parts(curves, start, end, seconds=1.0):
    """Return a cell's features by name, in their order."""
    row = cell_features(curves, np.array([[start, end]]), seconds)[0]
    sizes = {"along": 12, "across start": 27, "across end": 27}
    sizes |= {"start by step": 15, "end by step": 15, "means": 12, "sizes": 3}
    assert sum(sizes.values()) == FEATURES == len(row)
    return dict(zip(sizes, np.split(row, np.cumsum(list(sizes.values()))[:-1]), strict=True))


# Curves whose value at the middle of a step is its place in steps, times 1, 10 and 100.
RAMPS = (np.arange(STEPS) + 0.5)[:, None] * [1.0, 10.0, 100.0]


@pytest.mark.parametrize(("start", "end"), [(10.0, 18.0), (12.25, 13.5), (15.0, 15.5)])
def test_samples_of_a_straight_line_are_their_places(start, end):
    found = parts(RAMPS, start, end, 0.5)
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
    # inside 10…18, before 6…10, behind 18…22, middle half 12…16
    expected = np.outer([14, 8, 20, 14], [1, 10, 100]).ravel()
    np.testing.assert_allclose(parts(RAMPS, 10.0, 18.0)["means"], expected, rtol=1e-5)
    flat = np.zeros((STEPS, 3))
    flat[12:16, 1] = 1
    means = parts(flat, 10.0, 18.0)["means"].reshape(4, 3)
    np.testing.assert_allclose(means[:, 1], [0.5, 0, 0, 1])


def test_curves_are_0_beyond_the_ends_of_the_video():
    found = parts(np.ones((STEPS, 3)), 0.0, STEPS)
    by_step = [0, 0, 0.5, 1, 1]
    np.testing.assert_allclose(found["start by step"].reshape(3, 5), [by_step] * 3, atol=1e-6)
    np.testing.assert_allclose(found["end by step"].reshape(3, 5), [by_step[::-1]] * 3, atol=1e-6)
    np.testing.assert_allclose(found["means"].reshape(4, 3)[:, 0], [1, 0, 0, 1])
    np.testing.assert_allclose(found["sizes"], np.log([STEPS, 1, STEPS]), atol=1e-6)
    assert np.isfinite(cell_features(np.ones((1, 3)), np.array([[0.0, 1.0]]), 3.0)).all()


def test_a_cell_among_others_has_the_features_that_it_has_alone(rng):
    curves = rng.random((STEPS, 3)).astype(np.float32)
    starts = rng.random((30, 1)) * 30
    cells = np.concatenate([starts, starts + 0.5 + rng.random((30, 1)) * 9], axis=1)
    together = cell_features(curves, cells, 1.0)
    assert together.dtype == np.float32
    alone = np.concatenate([cell_features(curves, cell[None], 1.0) for cell in cells])
    np.testing.assert_array_equal(together, alone)
