"""Labels of segments: their features, the regression, the rows and detections made of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.arrays import temporal_iou
from actionspan.proposals.classifier_training import fit_softmax
from actionspan.proposals.segment_classifier import (
    BLOCKS,
    neighbours,
    segment_features,
    softmax_scores,
)
from actionspan.proposals.segments import detection_rows, label_rows

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


@given(st.lists(st.tuples(times, times).map(sorted), max_size=5))
def test_equals_the_sum_over_steps(segments):
    found = segment_features(SEQUENCE, segments, DURATION)
    assert found.shape == (len(segments), BLOCKS * CHANNELS + 1)
    expected = [literal(*segment) for segment in segments]
    np.testing.assert_allclose(found, np.reshape(expected, found.shape), atol=1e-6)


@given(st.floats(0, 20), st.floats(0.01, 10), st.floats(0, 0.49))
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


def problem(rows=60, columns=5, classes=3):
    random = np.random.default_rng(1)
    features = random.normal(size=(rows, columns))
    named = (features[:, :classes] + random.normal(size=(rows, classes))).argmax(axis=1)
    return features, named.astype(np.int64), classes


@pytest.mark.parametrize("penalty", [0.01, 1.0])
def test_the_gradient_is_zero(penalty):
    features, classes, count = problem()
    fitted = fit_softmax(features, classes, count, penalty)
    # the gradient of the mean cross-entropy: (scores - truth) · inputs
    error = softmax_scores(features, fitted) - np.eye(count)[classes]
    weights = error.T @ features / len(features) + penalty * fitted[:, :-1]
    assert abs(weights).max() < 2e-5
    assert abs(error.mean(axis=0)).max() < 2e-5


def test_another_start_gives_the_same():
    features, classes, count = problem()
    weak, strong = (fit_softmax(features, classes, count, each) for each in (0.01, 1.0))
    again = fit_softmax(features, classes, count, 0.01, strong)
    scores = softmax_scores(features, again)
    np.testing.assert_allclose(scores, softmax_scores(features, weak), atol=1e-3)


def test_scores_add_up_to_1_even_where_logits_are_huge():
    coefficients = np.array([[1000.0, 0.0], [-1000.0, 0.0]])
    np.testing.assert_allclose(
        softmax_scores(np.array([[2.0], [0.0]]), coefficients), [[1, 0], [0.5, 0.5]]
    )
    assert softmax_scores(np.ones((3, 1)), np.zeros((1, 2))).tolist() == [[1.0]] * 3
    assert softmax_scores(np.ones((3, 1)), np.zeros((0, 2))).shape == (3, 0)


ROWS = [{"score": 0.8, "segment": [0.0, 2.0]}, {"score": 0.5, "segment": [3.0, 4.0], "note": "x"}]
SCORES = np.array([[0.3, 0.6, 0.1], [0.0, 0.25, 0.75]])
CLASSES = ("fall", "sit", "stand")


def test_a_row_gets_its_best_class_and_keeps_the_rest():
    assert label_rows(ROWS, CLASSES, SCORES) == [
        {"score": 0.8, "segment": [0.0, 2.0], "label": "sit", "label_score": 0.6},
        {"score": 0.5, "segment": [3.0, 4.0], "note": "x", "label": "stand", "label_score": 0.75},
    ]
    assert label_rows(ROWS, (), np.zeros((2, 0))) == ROWS


def test_detections_are_the_best_classes_of_each_in_order_of_score():
    rows = detection_rows(ROWS, CLASSES, SCORES, 2)
    assert [list(row) for row in rows] == [["label", "score", "segment"]] * 4
    assert [(row["label"], row["segment"][0]) for row in rows] == [
        *(("sit", 0.0), ("stand", 3.0), ("fall", 0.0), ("sit", 3.0))
    ]
    np.testing.assert_allclose([row["score"] for row in rows], [0.48, 0.375, 0.24, 0.125])
    assert len(detection_rows(ROWS, CLASSES, SCORES, 9)) == 6
    assert detection_rows(ROWS, (), np.zeros((2, 0)), 2) == []
