"""Training the classifier of segments on the instances of the training videos.

Its classes exclude each other, unless one happens during half of an instance of another, or more.
Then each is learned against the rest, without such instances as examples against the other.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from actionspan.annotations.tables import Instance
from actionspan.arrays import Float32, Float64, Int64
from actionspan.jobs.determinism import deterministic
from actionspan.proposals import segment_classifier as segments
from actionspan.proposals.segment_classifier import BLOCKS, SegmentClassifier
from actionspan.proposals.settings import ClassifierSettings

_ALSO = 0.5  # share of an instance from which on another class happens there, too
_MOST_CHOOSING = 1000  # instances by which the penalty is chosen: more would only cost time
LOG_COLUMNS = tuple("penalty folds videos instances log_loss accuracy accuracy_moved kept".split())


@dataclass(frozen=True, kw_only=True)
class LabelledVideo:
    """A video to learn from."""

    sequence: Float32  # (T, C) features
    duration_seconds: float
    instances: Sequence[Instance]


def train_classifier(
    videos: Iterable[LabelledVideo], channels: int, settings: ClassifierSettings | None = None
) -> tuple[SegmentClassifier, list[dict[str, Any]]]:
    """Train a classifier; the same input and settings give the same bits.

    Proposals are not exact, so that each instance is learned with its `neighbours`. The strength of
    the penalty is the one of the least cross-entropy in cross-validation over videos.

    Args:
        videos: Of the training subset, in an order of no meaning (e.g. by id); taken one by one.
        channels: C, also without videos.
        settings: Folds, penalties and how far ends are moved.

    Returns:
        The classifier and the cross-validation, a row of `LOG_COLUMNS` a penalty. There is nothing
        to choose, and no row, with fewer than two classes or two videos with instances: then the
        strongest penalty is taken.
    """
    settings = settings or ClassifierSettings()
    described = [
        (video.instances, _describe(video, settings.shift)) for video in videos if video.instances
    ]
    labels = tuple(sorted({each.label for instances, _ in described for each in instances}))
    if len(labels) < 2:
        nothing = np.zeros((len(labels), BLOCKS * channels + 2))
        return SegmentClassifier(labels=labels, coefficients=nothing), []
    rows = [_Rows(features, *_classes(instances, labels)) for instances, features in described]
    del described  # the rows have its features
    several = any(each.also.any() for each in rows)
    log = _cross_validate(rows, len(labels), settings, several=several)
    strongest_first = settings.penalties[::-1]
    last = next((place for place, row in enumerate(log) if row["kept"]), 0)
    joined = _joined(rows, several=several)
    coefficients = _fit_path(*joined, len(labels), strongest_first[: last + 1])[-1]
    return SegmentClassifier(labels=labels, coefficients=coefficients, several=several), log


@dataclass(frozen=True)
class _Rows:
    """One video's G instances."""

    features: Float64  # (9, G, D) of their neighbours, the first exact
    classes: Int64  # (G,)
    also: NDArray[np.bool_]  # (G, K), whether another class happens there, too

    def targets(self, *, several: bool) -> Int64 | Float64:
        """Return the truth of instances: classes (G,), or yes, no and NaN (G, K) for `several`."""
        if not several:
            return self.classes
        known = np.where(self.also, np.nan, 0.0)
        known[np.arange(len(known)), self.classes] = 1.0
        return known


def _classes(
    instances: Sequence[Instance], labels: Sequence[str]
) -> tuple[Int64, NDArray[np.bool_]]:
    """Return `classes` and `also` of the instances of a video."""
    places = {label: place for place, label in enumerate(labels)}
    classes = np.array([places[each.label] for each in instances], np.int64)
    starts, ends = np.array([[each.start, each.end] for each in instances]).T
    shared = np.minimum(ends[:, None], ends) - np.maximum(starts[:, None], starts)  # (G, G)
    covered = shared >= _ALSO * (ends - starts)[:, None]
    also = np.zeros((len(instances), len(labels)), np.bool_)
    for place in range(len(labels)):
        also[:, place] = covered[:, classes == place].any(axis=1)
    also[np.arange(len(also)), classes] = False
    return classes, also


def _describe(video: LabelledVideo, shift: float) -> Float64:
    """Return the features (9, G, D) of the neighbours of a video's instances."""
    exact = [[each.start, each.end] for each in video.instances]
    near = segments.neighbours(exact, video.duration_seconds, shift)  # (9, G, 2)
    flat = near.reshape(-1, 2)
    features = segments.segment_features(video.sequence, flat, video.duration_seconds)
    return features.reshape(*near.shape[:2], -1)


def _joined(rows: list[_Rows], *, several: bool) -> tuple[Float64, Int64 | Float64]:
    """Empty the list into (N, D) features and N targets, so that memory holds them once."""
    targets = np.concatenate(
        [each.targets(several=several) for each in rows for _ in range(len(each.features))]
    )
    features = np.empty((len(targets), rows[0].features.shape[2]))
    end = len(features)
    while rows:
        each = rows.pop().features.reshape(-1, features.shape[1])
        features[end - len(each) : end] = each
        end -= len(each)
    return features, targets


def _fit_path(
    features: Float64, targets: Int64 | Float64, classes: int, penalties: Sequence[float]
) -> list[Float64]:
    """Return the coefficients for falling penalties, each fit started from the one before.

    Each block of features has one scale, and so has the length: scaling each dimension would lift
    the least principal components to the first. The scaling is in place.
    """
    mean, variance = features.mean(axis=0), features.var(axis=0)
    blocks = variance[:-1].reshape(BLOCKS, -1)
    common = np.repeat(blocks.mean(axis=1), blocks.shape[1])
    deviation = np.sqrt(np.append(common, variance[-1]))
    scale = np.where(deviation > 0, deviation, 1.0)
    features -= mean
    features /= scale
    fitted: list[Float64] = []
    start = None
    for penalty in penalties:
        start = fit_softmax(features, targets, classes, penalty, start)
        # coefficients of the features as they are
        weights = start[:, :-1] / scale
        fitted.append(np.column_stack([weights, start[:, -1] - weights @ mean]))
    return fitted


def _cross_validate(
    rows: Sequence[_Rows], classes: int, settings: ClassifierSettings, *, several: bool
) -> list[dict[str, Any]]:
    """Return a row for each penalty, strongest first; fold k has videos k, k + folds, ….

    An instance with a class that is in no other fold counts as an error and has no part in the
    loss, which shows nothing about it.
    """
    stride = -(-sum(len(each.classes) for each in rows) // _MOST_CHOOSING)
    chosen = rows[:: max(1, min(stride, len(rows) // settings.folds))]
    folds = min(settings.folds, len(chosen))
    if folds < 2:
        return []
    penalties = settings.penalties[::-1]
    losses: list[list[Float64]] = [[] for _ in penalties]  # (9, G) a video
    hits: list[list[Float64]] = [[] for _ in penalties]
    for fold in range(folds):
        learned = [each for place, each in enumerate(chosen) if place % folds != fold]
        known = np.unique(np.concatenate([each.classes for each in learned]))
        joined = _joined(learned, several=several)
        for place, coefficients in enumerate(_fit_path(*joined, classes, penalties)):
            for held in chosen[fold::folds]:
                neighbours, count, width = held.features.shape
                score = segments.separate_scores if several else segments.softmax_scores
                scores = score(held.features.reshape(-1, width), coefficients)
                scores = scores.reshape(neighbours, count, -1)
                surprise = _surprise(scores, held, several=several)
                losses[place].append(surprise[:, np.isin(held.classes, known)])
                others = np.where(held.also, -np.inf, scores)  # a label that happens is right
                hits[place].append(others.argmax(axis=2) == held.classes)
    log: list[dict[str, Any]] = []
    for penalty, loss, hit in zip(penalties, losses, hits, strict=True):
        surprise, right = np.concatenate(loss, axis=1), np.concatenate(hit, axis=1)  # (9, G)
        least = float(surprise.mean()) if surprise.size else 0.0
        accuracies = float(right[0].mean()), float(right[1:].mean())
        row = penalty, folds, len(chosen), right.shape[1], least, *accuracies, False
        log.append(dict(zip(LOG_COLUMNS, row, strict=True)))
    min(log, key=lambda row: row["log_loss"])["kept"] = True
    return log


def _surprise(scores: Float64, held: _Rows, *, several: bool) -> Float64:
    """Return the cross-entropy (9, G) of scores (9, G, K), of all classes if `several`."""
    smallest = np.finfo(float).tiny
    truth = np.take_along_axis(scores, held.classes[None, :, None], axis=2)[..., 0]
    surprise: Float64 = -np.log(np.maximum(truth, smallest))
    if several:
        against = held.targets(several=True) == 0
        surprise = surprise - np.log(np.maximum(1 - scores, smallest)).sum(axis=2, where=against)
    return surprise


def fit_softmax(
    features: Float64,
    classes: Int64 | Float64,
    count: int,
    penalty: float,
    start: Float64 | None = None,
) -> Float64:
    """Return the coefficients (K, D + 1) of `count` K classes, the intercept last.

    They minimise the mean cross-entropy + penalty / 2 · |coefficients|², without the intercepts.
    Features (N, D) should be of similar scale, since the penalty treats them alike; classes (N,)
    are in 0…K − 1. With classes (N, K) of 1, 0 and NaN, which has no part in the loss, each class
    is learned against the rest. The fit may begin at the coefficients of a stronger penalty,
    `start`.
    """
    columns = features.shape[1]
    with deterministic(threads=1):
        inputs, targets = torch.from_numpy(features), torch.from_numpy(classes)
        first = np.zeros((count, columns + 1)) if start is None else start
        coefficients = torch.tensor(first, requires_grad=True)
        optimiser = torch.optim.LBFGS(
            [coefficients],
            max_iter=100,
            tolerance_grad=1e-5,
            tolerance_change=0,
            history_size=20,
            line_search_fn="strong_wolfe",
        )

        def loss() -> torch.Tensor:
            optimiser.zero_grad()
            logits = inputs @ coefficients[:, :-1].T + coefficients[:, -1]  # (N, K)
            if targets.ndim == 1:
                total = torch.nn.functional.cross_entropy(logits, targets)
            else:
                total = _against_the_rest(logits, targets)
            total = total + penalty / 2 * coefficients[:, :-1].square().sum()
            total.backward()  # type: ignore[no-untyped-call]
            return total

        optimiser.step(loss)  # type: ignore[no-untyped-call]
        fitted: Float64 = coefficients.detach().numpy()
    return fitted


def _against_the_rest(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return the cross-entropy of targets (N, K) other than NaN: a sum over K, a mean over N."""
    known = ~targets.isnan()
    entropy = torch.nn.functional.binary_cross_entropy_with_logits
    return entropy(logits[known], targets[known], reduction="sum") / len(targets)
