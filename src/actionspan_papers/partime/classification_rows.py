"""Classes learned from streams of labelled snippets, run by run."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from actionspan.arrays import Float32, Int64
from actionspan.dataset.tables import read_instances
from actionspan.errors import InputError
from actionspan.features.store import open_features
from actionspan.running.determinism import deterministic, seed_torch
from actionspan_papers.experiments import Row
from actionspan_papers.partime.networks import learner, perceptron
from actionspan_papers.partime.settings import (
    ClassificationSettings,
    PartimeSettings,
    Variant,
    variants,
)

Order = Literal["played", "shuffled"]
ORDERS: tuple[Order, ...] = get_args(Order)
_BACKGROUND = "background"


@dataclass(frozen=True, kw_only=True)
class Snippets:
    """The snippets of some videos in their order: (T, C) features and (T,) classes of each."""

    features: list[Float32]
    labels: list[Int64]

    def stream(self, order: Order, samples: int, seed: int) -> tuple[Tensor, Tensor]:
        """Return at most so many snippets, from all videos alike, and their classes.

        Args:
            order: `played`: video after video, the videos shuffled; or every snippet shuffled.
            samples: How many; every so many snippets of a video are taken.
            seed: Of the order.
        """
        generator = np.random.default_rng([seed, 3])
        videos = generator.permutation(len(self.features))
        step = max(1, sum(map(len, self.labels)) // samples)
        x = np.concatenate([self.features[video][::step] for video in videos])
        y = np.concatenate([self.labels[video][::step] for video in videos])
        if order == "shuffled":
            places = generator.permutation(len(y))
            x, y = x[places], y[places]
        return torch.from_numpy(x[:samples]), torch.from_numpy(y[:samples])


def read_snippets(features: Path, annotations: Path, subset: str) -> tuple[list[str], Snippets]:
    """Return the classes, background first, and the snippets of the videos of a subset.

    A snippet is of the class of the action at its centre; of two, of the one that begins last.

    Raises:
        InputError: There are fewer than two videos of the subset.
    """
    opened, instances = open_features(features), read_instances(annotations)
    classes = [_BACKGROUND, *sorted({i.label for own in instances.values() for i in own})]
    found, labelled = [], []
    for rows in opened.videos():
        if opened.subset[rows.start] != subset:
            continue
        steps = np.asarray(opened.sequence(rows), np.float32)
        middles = (np.arange(len(steps)) + 0.5) * opened.duration_seconds[rows.start] / len(steps)
        labels = np.zeros(len(steps), np.int64)
        actions = instances.get(opened.video_id[rows.start], ())
        for action in sorted(actions, key=lambda own: own.start):
            inside = (middles >= action.start) & (middles < action.end)
            labels[inside] = classes.index(action.label, 1)
        found.append(steps)
        labelled.append(labels)
    if len(found) < 2:
        raise InputError(f"{features}: {len(found)} videos of the subset {subset}: 2 at least")
    return classes, Snippets(features=found, labels=labelled)


def split_videos(snippets: Snippets) -> tuple[Snippets, Snippets]:
    """Return the videos without every fourth, and every fourth: to choose a rate on."""
    count = len(snippets.labels)
    every = min(4, count)
    parts = []
    for held in (False, True):
        places = [place for place in range(count) if (place % every == every - 1) == held]
        features = [snippets.features[place] for place in places]
        labels = [snippets.labels[place] for place in places]
        parts.append(Snippets(features=features, labels=labels))
    return parts[0], parts[1]


def windows(x: Tensor, y: Tensor, size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield a stream's windows of the last `size` samples: each replaces the oldest by the newest.

    A place in the window keeps its sample until that is replaced. The first window is full.
    """
    size = min(size, len(y))
    held, labels = x[:size].clone(), y[:size].clone()
    yield held.clone(), labels.clone()
    for new in range(size, len(y)):
        held[new % size], labels[new % size] = x[new], y[new]
        yield held.clone(), labels.clone()


def changed_share(stages: int, window: int) -> float:
    """Return what part of the window is another when the first stage's gradient comes: 2(D-1)/B."""
    return min(1.0, 2 * (stages - 1) / window)


class _Way(NamedTuple):
    order: Order
    window: int
    variant: Variant


def classification_rows(
    features: Path,
    annotations: Path,
    subset: str,
    own: PartimeSettings,
    settings: ClassificationSettings,
) -> tuple[list[str], list[Row]]:
    """Return the classes, and a row a stream, window, way of learning, rate and seed.

    Rates are chosen on training videos that are not learned from; scored are those of `subset`.
    """
    classes, learned = read_snippets(features, annotations, "training")
    _, scored = read_snippets(features, annotations, subset)
    counts = np.bincount(np.concatenate(learned.labels), minlength=len(classes))
    present = counts > 0
    weights = np.where(present, counts.sum() / np.maximum(counts, 1) / present.sum(), 0.0)
    accuracy = partial(_accuracy, torch.from_numpy(weights.astype(np.float32)), settings)
    kept, held = split_videos(learned)
    rows: list[Row] = []
    with deterministic(threads=1):
        for each in product(ORDERS, settings.windows, variants(own.stages, last_only=True)):
            way = _Way(*each)
            tried = {rate: accuracy(way, rate, kept, held, 0) for rate in settings.learning_rates}
            best = max(tried, key=lambda rate: tried[rate])
            rows += [_row(way, rate, "choosing", 0, reached) for rate, reached in tried.items()]
            for seed in range(1, own.seeds + 1):
                reached = accuracy(way, best, learned, scored, seed)
                rows.append(_row(way, best, "scored", seed, reached))
    return classes, rows


def _row(way: _Way, rate: float, part: str, seed: int, accuracy: float) -> Row:
    share = changed_share(way.variant.stages, way.window)
    named = {"stream": way.order, "window": way.window, **way.variant.cells, "changed_share": share}
    return {**named, "learning_rate": rate, "part": part, "seed": seed, "accuracy": accuracy}


def _accuracy(
    weights: Tensor,
    settings: ClassificationSettings,
    way: _Way,
    rate: float,
    learned: Snippets,
    scored: Snippets,
    seed: int,
) -> float:
    """Return the accuracy, mean over classes, of a network after one pass over a stream."""
    x, y = learned.stream(way.order, settings.samples, seed)
    seed_torch(seed, 4)
    network = perceptron(x.shape[1], settings.hidden, len(weights), nn.ReLU)
    with learner(network, way.variant, rate, partial(_loss, weights)) as pipeline:
        for sample, target in windows(x, y, way.window):
            pipeline.step(sample, target)
        pipeline.drain()
    labels = np.concatenate(scored.labels)
    with torch.no_grad():
        found = network(torch.from_numpy(np.concatenate(scored.features))).argmax(dim=1).numpy()
    right = [float((found[labels == label] == label).mean()) for label in np.unique(labels)]
    return float(np.mean(right))


def _loss(weights: Tensor, output: Any, target: Any) -> Tensor:
    """Return the cross-entropy in which rare classes weigh as much as common ones."""
    each = functional.cross_entropy(output, target, reduction="none")
    return (each * weights[target]).mean()
