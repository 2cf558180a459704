"""tIoU: closed forms, symmetry, range, segments without length."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.proposals import temporal_iou
from proposals.oracle import iou

SEGMENT = st.tuples(st.floats(0, 1e4), st.floats(0, 1e4)).map(sorted)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([0, 1], [0, 1], 1.0),
        ([0, 1], [1, 2], 0.0),
        ([0, 1], [5, 6], 0.0),
        ([0, 2], [1, 3], 1 / 3),
        ([0, 4], [1, 2], 0.25),
        ([1, 1], [1, 1], 0.0),
        ([1, 1], [0, 2], 0.0),
    ],
)
def test_closed_forms(first, second, expected):
    assert temporal_iou([first], [second]).tolist() == [[expected]]


def test_shape_and_order_of_the_matrix():
    first = [[0, 1], [0, 2], [0, 4]]
    second = [[0, 1], [0, 2]]
    assert temporal_iou(first, second).tolist() == [[1, 0.5], [0.5, 1], [0.25, 0.5]]
    assert temporal_iou(first, np.zeros((0, 2))).shape == (3, 0)
    assert temporal_iou([], second).shape == (0, 2)


@given(st.lists(SEGMENT, min_size=1, max_size=5), st.lists(SEGMENT, min_size=1, max_size=5))
def test_symmetric_in_range_and_equal_to_the_slow_one(first, second):
    matrix = temporal_iou(first, second)
    assert ((matrix >= 0) & (matrix <= 1)).all()
    assert (matrix == temporal_iou(second, first).T).all()
    slow = [[iou(one, two) for two in second] for one in first]
    np.testing.assert_allclose(matrix, slow, rtol=1e-6, atol=1e-6)


@given(SEGMENT.filter(lambda pair: pair[0] < pair[1]))
def test_a_segment_is_exactly_itself(segment):
    assert temporal_iou([segment], [segment]).item() == 1.0
