"""Class probabilities of clips: scores.json, the mean of both streams, and the accuracy."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from actionspan.arrays import Float64, Int64
from actionspan.errors import InputError
from actionspan.storage.writing import read_json


def read_classifier_scores(path: Path) -> dict[str, Any]:
    """Read a scores.json, with `probabilities` as a (clips, classes) array.

    Raises:
        InputError: The file is missing or of another kind.
    """
    content = read_json(path)
    try:
        clips, classes = len(content["clips"]), len(content["classes"])
        labels = np.array(content["labels"], np.int64)
        probabilities = np.array(content["probabilities"], np.float64).reshape(clips, classes)
        valid = labels.shape == (clips,) and np.isfinite(probabilities).all()
        if not (valid and ((labels >= 0) & (labels < classes)).all()):
            raise ValueError
        return {**content, "samples": int(content["samples"]), "probabilities": probabilities}
    except (KeyError, TypeError, ValueError):
        raise InputError(f"{path}: not the scores of a classifier's validation clips") from None


def accuracy(probabilities: Float64, labels: Int64) -> float:
    """Return the share of (N,) labels that are the most probable class of their row; NaN for N = 0.

    Probabilities are (N, classes).
    """
    if not len(labels):
        return float("nan")
    return float((probabilities.argmax(axis=1) == labels).mean())


def fused(streams: Sequence[Float64]) -> Float64:
    """Return the mean of the streams' probabilities (paper 003, section II)."""
    mean: Float64 = np.mean(streams, axis=0)
    return mean
