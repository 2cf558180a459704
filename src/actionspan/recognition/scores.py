"""The scores of a classifier's validation clips, scores.json, and how it was trained."""

from pathlib import Path
from typing import Any

import numpy as np

from actionspan.errors import InputError
from actionspan.files.storage import read_json
from actionspan.recognition.settings import RecognitionSettings


def read_classifier_scores(path: Path) -> dict[str, Any]:
    """Read one scores.json, with `probabilities` as a (clips, classes) array.

    Raises:
        InputError: The file is missing or is no such scores.
    """
    content = read_json(path)
    try:
        clips, classes = len(content["clips"]), len(content["classes"])
        labels = np.array(content["labels"], np.int64)
        probabilities = np.array(content["probabilities"], np.float64).reshape(clips, classes)
        whole = labels.shape == (clips,) and np.isfinite(probabilities).all()
        if not (whole and ((labels >= 0) & (labels < classes)).all()):
            raise ValueError
        return {**content, "samples": int(content["samples"]), "probabilities": probabilities}
    except (KeyError, TypeError, ValueError):
        raise InputError(f"{path}: not the scores of a classifier's validation clips") from None


def training_words(
    settings: RecognitionSettings, learners: int, weights: Path | None, data: str
) -> str:
    """Return how a classifier is trained, and on what, for captions."""
    start = "public weights" if settings.pretrained else "random weights"
    if weights:
        start = f"the weights {weights.name}"
    return (
        f"{settings.network} from {start}, {settings.optimiser} at {settings.learning_rate:g}, "
        f"{learners} learner{'s' if learners > 1 else ''}, {settings.epochs} epochs, batches of "
        f"{settings.batch_size} a learner at the start, on {data}"
    )
