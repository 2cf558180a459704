"""Features of segments against a slow sum over steps, and the neighbours of segments."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.proposals.segment_classifier import BLOCKS, neighbours, segment_features
from actionspan.proposals.segments import temporal_iou

STEPS, CHANNELS, DURATION = 12, 3, 30.0
SEQUENCE = np.random.default_rng(0).normal(size=(STEPS, CHANNELS)).astype(np.float32)
STEP = DURATION / STEPS  # seconds


def literal_mean(first, last):
    """Return the mean of the steps between two times, each by the part of it that is inside."""
    total, width = np.zeros(CHANNELS), 0.0
    for step in range(STEPS):
        inside = min(last, (step + 1) * STEP) - max(first, step * STEP)
        if inside > 0:
            total += inside * SEQUENCE[step].astype(float)
            width += inside
    return total / width if width else total


def literal(start, end):
    if end - start < STEP:
        start, end = (start + end) / 2 - STEP / 2, (start + end) / 2 + STEP / 2
    half, middle = (end - start) / 2, (start + end) / 2
    edges = [start - half, start, middle, end, end + half]
    means = [literal_mean(first, last) for first, last in zip(edges, edges[1:], strict=False)]
    return np.concatenate([*means, [np.log(end - start)]])


times = st.floats(-3.0, DURATION + 3).map(lambda time: round(time, 3))


@given(st.lists(st.tuples(times, times).map(sorted), min_size=1, max_size=5))
def test_equals_the_sum_over_steps(segments):
    found = segment_features(SEQUENCE, segments, DURATION)
    assert found.shape == (len(segments), BLOCKS * CHANNELS + 1)
    expected = [literal(*segment) for segment in segments]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_constant_sequence_is_itself_in_each_region_that_is_in_the_video():
    ones = np.ones((100, 2), np.float32)
    (row,) = segment_features(ones, [[10.0, 30.0]], 50.0)
    np.testing.assert_allclose(row, [1] * 8 + [np.log(20)])
    (row,) = segment_features(ones, [[0.0, 50.0]], 50.0)
    np.testing.assert_allclose(row, [0, 0, 1, 1, 1, 1, 0, 0, np.log(50)], atol=1e-12)


def test_no_segments_are_no_rows():
    assert segment_features(SEQUENCE, [], DURATION).shape == (0, BLOCKS * CHANNELS + 1)


@given(
    st.floats(0, 20),
    st.floats(0.01, 10),
    st.floats(0, 0.49),
)
def test_neighbours_reach_the_tiou_that_their_shift_says(start, length, shift):
    segment = [[start, min(start + length, DURATION)]]
    found = neighbours(segment, DURATION, shift)
    assert found.shape == (9, 1, 2)
    assert found[0].tolist() == segment
    ious = temporal_iou(segment, found[:, 0])[0]
    assert (ious >= 1 - 2 * shift - 1e-9).all()
    assert (found >= 0).all()
    assert (found <= DURATION).all()


def test_each_end_moves_both_ways():
    found = neighbours([[10.0, 20.0]], 30.0, 0.2)[:, 0].tolist()
    expected = [[first, last] for first in (10, 8, 12) for last in (20, 18, 22)]
    assert found == pytest.approx(np.array(expected, float))
