"""The classifier that labels segments of a video by its features."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from actionspan import __version__
from actionspan.arrays import Float32, Float64
from actionspan.errors import InputError
from actionspan.features.store import open_features
from actionspan.proposals.segments import Row, label_rows
from actionspan.storage.model_files import Part, read_model, write_model

BLOCKS = 4  # before, first half, second half, after
_NOTHING = 1e-6  # steps: a region that is shorter has no features


def segment_features(sequence: Float32, segments: ArrayLike, duration_seconds: float) -> Float64:
    """Describe segments of a video by its features there.

    A step that lies partly in a region counts by that part. Before and after are as long as half
    the segment, but end with the video; where nothing is left of a region its mean is 0, as of
    centred features. A segment shorter than a step is taken as long as one.

    Args:
        sequence: (T, C) features of T equal steps that cover the video.
        segments: (M, 2) starts and ends in seconds, start ≤ end.
        duration_seconds: The video's length.

    Returns:
        (M, 4 C + 1): the means before, in the first half, in the second half and after; and the
        logarithm of the length in seconds.
    """
    steps = len(sequence)
    within = np.asarray(segments, np.float64).reshape(-1, 2) / duration_seconds * steps
    centre = within.mean(axis=1)
    half = np.maximum(within[:, 1] - within[:, 0], 1.0) / 2
    # the edges of the regions, and the integral of the features up to each
    edges = np.clip(centre[:, None] + half[:, None] * np.arange(-2, 3), 0, steps)  # (M, 5)
    integral = np.zeros((steps + 1, sequence.shape[1]))
    np.cumsum(sequence, axis=0, dtype=np.float64, out=integral[1:])
    before = np.minimum(edges.astype(np.intp), steps - 1)
    share = (edges - before)[..., None]
    reached = integral[before] * (1 - share) + integral[before + 1] * share  # (M, 5, C)
    widths = np.diff(edges, axis=1)[..., None]
    # a difference of the integral over next to nothing would be rounding alone
    inside = widths > _NOTHING
    means = np.diff(reached, axis=1) * inside / np.where(inside, widths, 1)  # (M, 4, C)
    means = means.reshape(len(within), BLOCKS * sequence.shape[1])
    seconds = 2 * half / steps * duration_seconds
    return np.concatenate([means, np.log(seconds)[:, None]], axis=1)


def neighbours(segments: ArrayLike, duration_seconds: float, shift: float) -> Float64:
    """Return (9, M, 2) segments: as they are, then with one or both ends earlier or later.

    An end moves by `shift` (0 to below 0.5) of the segment's length, so that the tIoU with the
    segment is 1 − 2 · shift or more. Ends stay inside the video.
    """
    exact = np.asarray(segments, np.float64).reshape(-1, 2)
    moves = (0.0, -shift, shift)
    factors = np.array([[[first, last]] for first in moves for last in moves])  # (9, 1, 2)
    moved: Float64 = exact + factors * (exact[:, 1:] - exact[:, :1])
    return np.clip(moved, 0, duration_seconds)


_KIND = "actionspan segment classifier"


@dataclass(frozen=True, kw_only=True)
class SegmentClassifier:
    """A linear classifier of segments.

    `labels` are the K classes; `coefficients` (K, 4 C + 2) are for `segment_features` of C
    channels, the intercept last. With one class its score is always 1; K = 0 labels nothing. Where
    a segment may have `several` labels, each class was learned against the rest.
    """

    labels: tuple[str, ...]
    coefficients: Float64
    several: bool = False

    @property
    def channels(self) -> int:
        """C, how many features a step has."""
        return int(self.coefficients.shape[1] - 2) // BLOCKS

    def scores(self, sequence: Float32, segments: ArrayLike, duration_seconds: float) -> Float64:
        """Return the probabilities (M, K) of the classes.

        Each row adds up to 1, unless a segment may have several labels. Arguments are as in
        `segment_features`. The bits do not depend on the number of threads or on other videos.

        Raises:
            ValueError: The sequence has another number of channels.
        """
        if sequence.shape[1] != self.channels:
            raise ValueError(f"{sequence.shape[1]} channels; the classifier has {self.channels}")
        inputs = segment_features(sequence, segments, duration_seconds)
        if self.several:
            return separate_scores(inputs, self.coefficients)
        return softmax_scores(inputs, self.coefficients)


def classifier_state(classifier: SegmentClassifier) -> dict[str, Any]:
    """Return what `classifier_from_state` needs, in types that `read_model` reads."""
    state = {
        "labels": list(classifier.labels),
        "coefficients": torch.from_numpy(np.array(classifier.coefficients)),
    }
    return {**state, "several": 1} if classifier.several else state


def classifier_from_state(part: Part) -> SegmentClassifier:
    """Build the classifier that `classifier_state` described, or raise InputError."""
    labels = tuple(label.text() for label in part["labels"].items(0, 100_000))
    coefficients = part["coefficients"].tensor(len(labels), None, kind=torch.float64)
    if (coefficients.shape[1] - 2) % BLOCKS:
        part["coefficients"].refuse(f"{BLOCKS} columns for each feature, and 2")
    several = "several" in part and part["several"].whole(0, 1) == 1
    return SegmentClassifier(labels=labels, coefficients=coefficients.numpy(), several=several)


def save_classifier(path: Path, classifier: SegmentClassifier, settings_digest: str) -> None:
    """Write the classifier, atomically; equal coefficients give equal bytes."""
    kind = {"kind": _KIND, "actionspan_version": __version__, "digest": settings_digest}
    write_model(path, {**kind, "classifier": classifier_state(classifier)})


def load_classifier(path: Path) -> SegmentClassifier:
    """Read what `save_classifier` wrote, or raise InputError."""
    part = read_model(path)
    if "kind" not in part or part["kind"].value != _KIND:
        line = "not a classifier of segments; `actionspan proposals classifier` makes one"
        raise InputError(f"{path}: {line}")
    return classifier_from_state(part["classifier"])


def softmax_scores(features: Float64, coefficients: Float64) -> Float64:
    """Return the probabilities (N, K) of the classes of (N, D) features; each row adds up to 1."""
    logits = _logits(features, coefficients)
    powers = np.exp(logits - logits.max(axis=1, keepdims=True, initial=-np.inf))
    scores: Float64 = powers / powers.sum(axis=1, keepdims=True)
    return scores


def separate_scores(features: Float64, coefficients: Float64) -> Float64:
    """Return the probability (N, K) of each class by itself, of (N, D) features."""
    scores: Float64 = 0.5 + 0.5 * np.tanh(_logits(features, coefficients) / 2)  # never overflows
    return scores


def _logits(features: Float64, coefficients: Float64) -> Float64:
    # the order of einsum's sums does not depend on the number of threads, as in BLAS
    weights = np.ascontiguousarray(coefficients[:, :-1])
    logits: Float64 = np.einsum("nd,kd->nk", features, weights, optimize=False)
    return logits + coefficients[:, -1]


class Labeller:
    """A classifier of segments and the features of all videos.

    Raises:
        InputError: A file cannot be read, or the classifier was trained on other features.
    """

    def __init__(self, features: Path, classifier: Path) -> None:
        self._path, self._features = features, open_features(features)
        self._classifier = load_classifier(classifier)
        self._rows = {self._features.video_id[rows.start]: rows for rows in self._features.videos()}
        if (channels := self._features.array.shape[2]) != self._classifier.channels:
            learned = f"{classifier} was trained on {self._classifier.channels}"
            line = f"{channels} channels, but {learned}; train it on these features"
            raise InputError(f"{features}: {line}")

    @property
    def labels(self) -> tuple[str, ...]:
        """The K classes."""
        return self._classifier.labels

    def label(self, video_id: str, proposals: Sequence[Row]) -> list[Row]:
        """Return a video's proposals with the best class of each; see `scores`."""
        return label_rows(proposals, self.labels, self.scores(video_id, proposals))

    def scores(self, video_id: str, proposals: Sequence[Row]) -> Float64:
        """Return the scores (N, K) of the classes of a video's N proposals, or raise InputError."""
        if video_id not in self._rows:
            raise InputError(f"{self._path}: no video {video_id!r}, which has proposals")
        rows = self._rows[video_id]
        sequence = self._features.sequence(rows)
        duration = float(self._features.duration_seconds[rows.start])
        return self._classifier.scores(sequence, [row["segment"] for row in proposals], duration)


def optional_labeller(features: Path | None, classifier: Path | None) -> Labeller | None:
    """Return a labeller, or none without a classifier or classes; else raise InputError."""
    if classifier is None:
        return None
    if features is None:
        raise InputError("--classifier needs --features features.h5")
    labeller = Labeller(features, classifier)
    return labeller if labeller.labels else None
