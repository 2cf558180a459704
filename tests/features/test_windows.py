"""Windows cover a sequence, and what is cut can be merged again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.features.steps import cut_windows, merge_windows, window_starts


@st.composite
def layouts(draw):
    window = draw(st.integers(1, 30))
    return (
        draw(st.integers(1, 200)),
        window,
        draw(st.integers(1, window)),
        draw(st.integers(0, 20)),
    )


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (40, [0]),  # shorter than a window
        (100, [0]),
        (120, [0]),  # 20 are left: no more than the rest
        (121, [0, 21]),
        (150, [0, 50]),
        (220, [0, 50, 100]),
        (221, [0, 50, 100, 121]),
    ],
)
def test_the_windows_of_thumos14(steps, expected):
    assert window_starts(steps, window=100, stride=50, rest=20).tolist() == expected


@given(layouts())
def test_all_but_the_rest_is_covered_and_no_window_leaves_a_long_sequence(layout):
    steps, window, stride, rest = layout
    starts = window_starts(*layout)
    covered = np.zeros(steps, bool)
    for start in starts:
        covered[start : start + window] = True
    left = int((~covered).sum())
    assert left <= rest
    assert covered[: steps - left].all()
    assert len(set(starts.tolist())) == len(starts)
    assert steps <= window or (starts + window <= steps).all()


@given(layouts(), st.integers(0, 3))
def test_merging_gives_back_what_was_cut(layout, channels):
    steps, window, stride, _ = layout
    shape = (steps, channels) if channels else (steps,)
    sequence = np.random.default_rng(steps).normal(size=shape).astype(np.float32)
    starts = window_starts(steps, window, stride, rest=0)
    parts = cut_windows(sequence, starts, window)
    assert parts.shape == (len(starts), window, *shape[1:])
    merged = merge_windows(parts, starts, steps)
    assert merged.dtype == np.float32
    np.testing.assert_allclose(merged, sequence, rtol=1e-6)


def test_overlaps_are_means_and_what_no_window_covers_is_zero():
    parts = np.array([[1.0, 2.0, 3.0], [5.0, 7.0, 9.0]], np.float32)
    merged = merge_windows(parts, np.array([0, 2]), 6)
    assert merged.tolist() == [1, 2, 4, 7, 9, 0]


def test_a_short_sequence_is_padded_with_zeros():
    parts = cut_windows(np.ones((2, 1), np.float32), np.array([0]), 4)
    assert parts[0, :, 0].tolist() == [1, 1, 0, 0]
    assert merge_windows(parts, np.array([0]), 2)[:, 0].tolist() == [1, 1]
