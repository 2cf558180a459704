import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.finetune.precision import average_precision, mean_average_precision

ROWS = st.lists(st.tuples(st.integers(-3, 3), st.booleans(), st.integers(0, 3)), max_size=30)
INFINITE = {-3: -math.inf, 3: math.inf}


def by_definition(scores, positive):
    """Each positive row, the precision of all rows that score as high as it or higher."""
    found = []
    for score, right in zip(scores, positive, strict=True):
        if right:
            above = [other for other, value in zip(positive, scores, strict=True) if value >= score]
            found.append(sum(above) / len(above))
    return sum(found) / len(found) if found else math.nan


@given(rows=ROWS, infinite=st.booleans())
def test_agrees_with_the_definition(rows, infinite):
    scores = [INFINITE.get(score, score) if infinite else score for score, *_ in rows]
    positive = [right for _, right, _ in rows]
    value = average_precision(scores, positive)
    assert value == pytest.approx(by_definition(scores, positive), nan_ok=True)


@given(rows=ROWS)
def test_weights_count_rows_so_often(rows):
    scores, positive, weights = (
        (np.array(column) for column in zip(*rows, strict=True))
        if rows
        else (np.empty(0), np.empty(0, bool), np.empty(0))
    )
    weights = weights.astype(int)
    repeated = average_precision(np.repeat(scores, weights), np.repeat(positive, weights))
    assert average_precision(scores, positive, weights) == pytest.approx(repeated, nan_ok=True)


@given(rows=st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1), seed=st.integers(0))
def test_order_of_rows_does_not_matter(rows, seed):
    scores, positive = map(np.array, zip(*rows, strict=True))
    order = np.random.default_rng(seed).permutation(len(rows))
    value = average_precision(scores, positive)
    assert average_precision(scores[order], positive[order]) == pytest.approx(value, nan_ok=True)


def test_known_values():
    assert average_precision([3, 2, 1], [True, False, True]) == pytest.approx((1 + 2 / 3) / 2)
    assert average_precision([3, 2, 1], [True, True, False]) == 1
    # scores that say nothing have the share of positive rows, however the rows are ordered
    assert average_precision([0.5] * 4, [True, False, False, False]) == 0.25


def test_no_positive_row_is_no_value():
    assert math.isnan(average_precision([1.0, 2.0], [False, False]))
    assert math.isnan(average_precision([], []))
    assert math.isnan(average_precision([1.0, 2.0], [True, False], [0, 1]))


def test_classes_without_a_positive_row_are_left_out_of_the_mean():
    scores = np.array([[3, 1, 0], [2, 2, 0], [1, 3, 0]])
    positive = np.array([[1, 1, 0], [0, 0, 0], [1, 0, 0]], bool)
    assert mean_average_precision(scores, positive) == pytest.approx(((1 + 2 / 3) / 2 + 1 / 3) / 2)
    assert math.isnan(mean_average_precision(scores, np.zeros_like(positive)))


def test_what_cannot_be_ranked_is_named():
    with pytest.raises(ValueError, match=r"shapes \(2,\), \(1,\) and \(2,\): \(N,\) each"):
        average_precision([1, 2], [True])
    with pytest.raises(ValueError, match="a score is NaN"):
        average_precision([1, math.nan], [True, False])
    with pytest.raises(ValueError, match="a weight is negative or not finite: 0 or more"):
        average_precision([1, 2], [True, False], [1, -1])
    with pytest.raises(ValueError, match=r"\(N, K\)"):
        mean_average_precision([1, 2], [True, False])
