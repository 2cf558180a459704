"""The classifier that labels segments of a video by its features."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from actionspan import __version__
from actionspan.arrays import Float32, Float64
from actionspan.errors import InputError
from actionspan.files.torch_files import Part, read_model, write_torch
from actionspan.proposals.segment_features import BLOCKS, segment_features
from actionspan.proposals.softmax_regression import softmax_scores

MOST_LABELS = 100_000
_KIND = "actionspan segment classifier"


@dataclass(frozen=True, kw_only=True)
class SegmentClassifier:
    """A linear classifier of segments.

    `labels` are the K classes; `coefficients` (K, 4 C + 2) are those of `segment_features` of C
    channels, the intercept last. With one class its score is always 1; K = 0 labels nothing.
    """

    labels: tuple[str, ...]
    coefficients: Float64

    @property
    def channels(self) -> int:
        """C, how many features a step has."""
        return int(self.coefficients.shape[1] - 2) // BLOCKS

    def scores(self, sequence: Float32, segments: ArrayLike, duration_seconds: float) -> Float64:
        """Return the probabilities (M, K) of the classes; each row adds up to 1.

        Arguments are those of `segment_features`. The bits do not depend on the number of threads
        or on other videos.

        Raises:
            ValueError: The sequence has another number of channels.
        """
        if sequence.shape[1] != self.channels:
            raise ValueError(f"{sequence.shape[1]} channels; the classifier has {self.channels}")
        inputs = segment_features(sequence, segments, duration_seconds)
        return softmax_scores(inputs, self.coefficients)


def classifier_state(classifier: SegmentClassifier) -> dict[str, Any]:
    """Return what `classifier_from_state` needs, in types that `read_torch` reads."""
    return {
        "labels": list(classifier.labels),
        "coefficients": torch.from_numpy(np.array(classifier.coefficients)),
    }


def classifier_from_state(state: Mapping[str, Any] | Part) -> SegmentClassifier:
    """Build the classifier `classifier_state` described.

    Raises:
        InputError: It is none.
    """
    part = state if isinstance(state, Part) else Part(state, "classifier")
    labels = tuple(label.text() for label in part["labels"].items(0, MOST_LABELS))
    given = part["coefficients"]
    coefficients = given.tensor(len(labels), None, kind=torch.float64)
    if (coefficients.shape[1] - 2) % BLOCKS:
        given.refuse(f"{BLOCKS} columns for each feature, and 2")
    return SegmentClassifier(labels=labels, coefficients=coefficients.numpy())


def save_classifier(path: Path, classifier: SegmentClassifier, settings_digest: str) -> None:
    """Write the classifier, atomically; equal coefficients give equal bytes."""
    content = {
        "kind": _KIND,
        "actionspan_version": __version__,
        "digest": settings_digest,
        "classifier": classifier_state(classifier),
    }
    write_torch(path, content)


def load_classifier(path: Path) -> SegmentClassifier:
    """Read what `save_classifier` wrote.

    Raises:
        InputError: The file is missing or holds no classifier of segments.
    """
    part = read_model(path)
    if "kind" not in part or part["kind"].value != _KIND:
        made = "`actionspan proposals classifier` makes one"
        raise InputError(f"{path}: not a classifier of segments; {made}")
    return classifier_from_state(part["classifier"])
