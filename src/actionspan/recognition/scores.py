"""The scores of a classifier's validation clips, scores.json."""

from pathlib import Path
from typing import Any

import numpy as np

from actionspan.errors import InputError
from actionspan.files.storage import read_json


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
