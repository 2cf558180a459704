"""Scores of classes to labels of proposals and to detections."""

from collections.abc import Sequence

import numpy as np

from actionspan.arrays import Float64
from actionspan.proposals.writing import Row


def label_rows(rows: Sequence[Row], labels: Sequence[str], scores: Float64) -> list[Row]:
    """Return one video's proposals with the best class of each and its score.

    Args:
        rows: N proposals.
        labels: The K classes; without any the rows stay as they are.
        scores: (N, K) of the classes, 0…1; of equal scores the first class counts.
    """
    if not labels:
        return list(rows)
    best = scores.argmax(axis=1).tolist()
    return [
        {**row, "label": labels[place], "label_score": float(values[place])}
        for row, place, values in zip(rows, best, scores, strict=True)
    ]


def detection_rows(
    rows: Sequence[Row], labels: Sequence[str], scores: Float64, classes: int
) -> list[Row]:
    """Return one video's detections, best first: each proposal as each of its best `classes`.

    A detection's score is the proposal's, 0 or more, times the class's. Other arguments are those
    of `label_rows`.
    """
    best = np.argsort(-scores, axis=1, kind="stable")[:, :classes]
    detections = [
        {
            "label": labels[place],
            "score": row["score"] * float(values[place]),
            "segment": list(row["segment"]),
        }
        for row, places, values in zip(rows, best.tolist(), scores, strict=True)
        for place in places
    ]
    return sorted(detections, key=lambda row: -row["score"])
