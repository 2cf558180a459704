"""Labels of rows, and detections made of them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from actionspan.proposals.segments import Row, detection_rows, label_rows

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


@given(st.integers(0, 20), st.integers(1, 4))
def test_all_classes_share_out_the_score_of_a_proposal(seed, classes):
    random = np.random.default_rng(seed)
    scores = random.dirichlet(np.ones(classes), 5)
    rows: list[Row] = [
        {"score": float(s), "segment": [float(i), i + 1.0]} for i, s in enumerate(random.random(5))
    ]
    names = [f"class {number}" for number in range(classes)]
    detections = detection_rows(rows, names, scores, classes)
    assert [row["score"] for row in detections] == sorted(
        (row["score"] for row in detections), reverse=True
    )
    for row in rows:
        mine = [each["score"] for each in detections if each["segment"] == row["segment"]]
        np.testing.assert_allclose(sum(mine), row["score"])
        (best,) = label_rows([row], names, scores[[rows.index(row)]])
        np.testing.assert_allclose(best["label_score"] * row["score"], max(mine))
