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


@given(rows=ROWS, infinite=st.booleans(), seed=st.integers(0))
def test_it_agrees_with_the_definition_in_any_order_and_weights_count_rows_so_often(
    rows, infinite, seed
):
    scores = np.array([INFINITE.get(each, each) if infinite else each for each, *_ in rows], float)
    positive = np.array([right for _, right, _ in rows], bool)
    weights = np.array([weight for *_, weight in rows], int)
    order = np.random.default_rng(seed).permutation(len(rows))
    expected = pytest.approx(by_definition(scores, positive), nan_ok=True)
    assert average_precision(scores, positive) == expected
    assert average_precision(scores[order], positive[order]) == expected
    repeated = by_definition(np.repeat(scores, weights), np.repeat(positive, weights))
    weighted = average_precision(scores, positive, weights)
    assert weighted == pytest.approx(repeated, nan_ok=True)


def test_known_values():
    assert average_precision([3, 2, 1], [True, False, True]) == pytest.approx((1 + 2 / 3) / 2)
    assert average_precision([3, 2, 1], [True, True, False]) == 1
    # scores that say nothing have the share of positive rows, however the rows are ordered
    assert average_precision([0.5] * 4, [True, False, False, False]) == 0.25
    assert math.isnan(average_precision([1.0, 2.0], [False, False]))
    assert math.isnan(average_precision([1.0, 2.0], [True, False], [0, 1]))


def test_classes_without_a_positive_row_are_left_out_of_the_mean():
    scores = np.array([[3, 1, 0], [2, 2, 0], [1, 3, 0]])
    positive = np.array([[1, 1, 0], [0, 0, 0], [1, 0, 0]], bool)
    assert mean_average_precision(scores, positive) == pytest.approx(((1 + 2 / 3) / 2 + 1 / 3) / 2)
    assert math.isnan(mean_average_precision(scores, np.zeros_like(positive)))


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        (average_precision, ([1, 2], [True]), r"shapes \(2,\), \(1,\) and \(2,\); each must be"),
        (average_precision, ([1, math.nan], [True, False]), "a score is NaN"),
        (average_precision, ([1, 2], [True, False], [1, -1]), "a weight is negative or not finite"),
        (mean_average_precision, ([1, 2], [True, False]), r"both must be \(N, K\)"),
    ],
)
def test_rows_that_cannot_be_ranked_are_refused(call, arguments, message):
    with pytest.raises(ValueError, match=message):
        call(*arguments)
