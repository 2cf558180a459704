"""A lattice has a cell near every segment, and no more cells than that takes."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.proposals.intensity import Lengths, lattice, usual_lengths
from actionspan.proposals.segments import temporal_iou
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


@given(st.integers(1, 120), SHARE, SHARE, SHARE, SHARE, SETTINGS)
def test_every_segment_has_a_cell_near_it(steps, first, second, size, place, settings):
    shortest, longest = sorted(1 + share * 1.2 * steps for share in (first, second))
    cells = lattice(steps, shortest, longest, settings)
    low, high = min(shortest, steps), min(longest, steps)
    length = low + size * (high - low)
    start = place * (steps - length)
    best = temporal_iou(cells, [(start, start + length)]).max()
    assert best >= least_overlap(settings) - 1e-9


@given(st.integers(1, 120), st.floats(0.1, 200), st.floats(0.1, 200), SETTINGS)
def test_cells_lie_in_the_video_and_have_rising_lengths(steps, one, two, settings):
    shortest, longest = sorted((one, two))
    cells = lattice(steps, shortest, longest, settings)
    assert (cells >= 0).all()
    assert (cells <= steps + 1e-9).all()
    lengths = cells[:, 1] - cells[:, 0]
    assert (lengths >= 1 - 1e-9).all()
    assert (np.diff(lengths) >= -1e-9).all()
    assert lengths[0] == pytest.approx(min(max(one, 1), max(two, 1), steps))
    assert lengths[-1] == pytest.approx(min(max(one, two, 1), steps))
    # each length from the start of the video to its end
    for length in np.unique(lengths.round(9)):
        own = cells[np.isclose(lengths, length)]
        assert own[:, 0].min() == pytest.approx(0, abs=1e-9)
        assert own[:, 1].max() == pytest.approx(steps)


def test_by_hand():
    cells = lattice(4, 1, 4, LatticeSettings(ratio=2.0, stride=1.0))
    expected = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 2), (2, 4), (0, 4)]
    np.testing.assert_allclose(cells, expected)


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
