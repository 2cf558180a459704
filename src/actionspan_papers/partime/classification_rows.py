"""Classes learned from streams of labelled snippets, run by run."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from actionspan.arrays import Float32, Int64
from actionspan.dataset.tables import read_instances
from actionspan.errors import InputError
from actionspan.features.store import open_features
from actionspan.jobs.determinism import deterministic, seed_torch
from actionspan_papers.experiments import Row
from actionspan_papers.partime.networks import learner, perceptron
from actionspan_papers.partime.settings import (
    ClassificationSettings,
    PartimeSettings,
    Variant,
    variants,
)

Order = Literal["played", "shuffled"]
_ORDERS: tuple[Order, ...] = get_args(Order)
_BACKGROUND = "background"


Snippets = Sequence[tuple[Float32, Int64]]
"""The snippets of each video in their order: (T, C) features and (T,) classes."""


def stream_of(videos: Snippets, order: Order, samples: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return at most `samples` snippets, evenly from all videos, and their classes.

    Args:
        videos: Their snippets.
        order: `played`: video after video, the videos shuffled; or every snippet shuffled.
        samples: The most; of each video every n-th snippet is taken.
        seed: Of the order.
    """
    generator = np.random.default_rng([seed, 3])
    shuffled = [videos[place] for place in generator.permutation(len(videos))]
    step = max(1, sum(len(labels) for _, labels in videos) // samples)
    x = np.concatenate([features[::step] for features, _ in shuffled])
    y = np.concatenate([labels[::step] for _, labels in shuffled])
    if order == "shuffled":
        places = generator.permutation(len(y))
        x, y = x[places], y[places]
    return torch.from_numpy(x[:samples]), torch.from_numpy(y[:samples])


def _read_snippets(features: Path, annotations: Path, subset: str) -> tuple[list[str], Snippets]:
    """Return the classes, background first, and the snippets of the videos of a subset.

    A snippet is of the class of the action at its centre; of two, of the one that begins last.

    Raises:
        InputError: There are fewer than two videos of the subset.
    """
    opened, instances = open_features(features), read_instances(annotations)
    classes = [_BACKGROUND, *sorted({i.label for own in instances.values() for i in own})]
    videos = []
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
        videos.append((steps, labels))
    if len(videos) < 2:
        raise InputError(f"{features}: {len(videos)} videos of the subset {subset}: 2 at least")
    return classes, videos


def split_videos(videos: Snippets) -> tuple[Snippets, Snippets]:
    """Return the videos without every fourth, and every fourth: to choose a rate on."""
    last = min(4, len(videos)) - 1
    kept = [video for place, video in enumerate(videos) if place % 4 != last]
    return kept, videos[last::4]


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
    """Return the part of a window that is new when the first stage's gradient comes: 2(D-1)/B."""
    return min(1.0, 2 * (stages - 1) / window)


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
    classes, learned = _read_snippets(features, annotations, "training")
    _, scored = _read_snippets(features, annotations, subset)
    counts = np.bincount(np.concatenate([labels for _, labels in learned]), minlength=len(classes))
    present = counts > 0
    weights = np.where(present, counts.sum() / np.maximum(counts, 1) / present.sum(), 0.0)
    accuracy = partial(_accuracy, torch.from_numpy(weights.astype(np.float32)), settings)
    kept, held = split_videos(learned)
    rows: list[Row] = []
    with deterministic(threads=1):
        ways = product(_ORDERS, settings.windows, variants(own.stages, last_only=True))
        for order, window, variant in ways:
            learn = partial(accuracy, order, window, variant)
            tried = {rate: learn(rate, kept, held, 0) for rate in settings.learning_rates}
            best = max(tried, key=lambda rate: tried[rate])
            runs = [(rate, "choosing", 0, reached) for rate, reached in tried.items()]
            for seed in range(1, own.seeds + 1):
                runs.append((best, "scored", seed, learn(best, learned, scored, seed)))
            share = changed_share(variant.stages, window)
            named = {"stream": order, "window": window, **variant.cells, "changed_share": share}
            columns = ("learning_rate", "part", "seed", "accuracy")
            rows += [{**named, **dict(zip(columns, run, strict=True))} for run in runs]
    return classes, rows


def _accuracy(
    weights: Tensor,
    settings: ClassificationSettings,
    order: Order,
    window: int,
    variant: Variant,
    rate: float,
    learned: Snippets,
    scored: Snippets,
    seed: int,
) -> float:
    """Return the accuracy, mean over classes, of a network after one pass over a stream."""
    x, y = stream_of(learned, order, settings.samples, seed)
    seed_torch(seed, 4)
    network = perceptron(x.shape[1], settings.hidden, len(weights), nn.ReLU)
    with learner(network, variant, rate, partial(_loss, weights)) as pipeline:
        for sample, target in windows(x, y, window):
            pipeline.step(sample, target)
        pipeline.drain()
    features, labels = (np.concatenate(each) for each in zip(*scored, strict=True))
    with torch.no_grad():
        found = network(torch.from_numpy(features)).argmax(dim=1).numpy()
    right = [float((found[labels == label] == label).mean()) for label in np.unique(labels)]
    return float(np.mean(right))


def _loss(weights: Tensor, output: Any, target: Any) -> Tensor:
    """Return the cross-entropy in which rare classes weigh as much as common ones."""
    each = functional.cross_entropy(output, target, reduction="none")
    return (each * weights[target]).mean()
