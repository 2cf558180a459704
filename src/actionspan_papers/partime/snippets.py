"""Labelled snippets of a data set, as streams and as windows that slide over them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from actionspan.arrays import Float32, Int64
from actionspan.dataset.tables import read_instances
from actionspan.errors import InputError
from actionspan.features.store import open_features

Order = Literal["played", "shuffled"]
ORDERS: tuple[Order, ...] = ("played", "shuffled")
BACKGROUND = "background"


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

    def all(self) -> tuple[Tensor, Int64]:
        """Return all snippets and their classes."""
        return torch.from_numpy(np.concatenate(self.features)), np.concatenate(self.labels)


def read_snippets(features: Path, annotations: Path, subset: str) -> tuple[list[str], Snippets]:
    """Return the classes, background first, and the snippets of the videos of a subset.

    A snippet is of the class of the action at its centre; of two, of the one that begins last.

    Raises:
        InputError: There is no video of the subset.
    """
    opened, instances = open_features(features), read_instances(annotations)
    classes = [BACKGROUND, *sorted({i.label for own in instances.values() for i in own})]
    numbers = {label: number for number, label in enumerate(classes)}
    found, labelled = [], []
    for rows in opened.videos():
        if opened.subset[rows.start] != subset:
            continue
        steps = np.asarray(opened.sequence(rows), np.float32)
        middles = (np.arange(len(steps)) + 0.5) * opened.duration_seconds[rows.start] / len(steps)
        labels = np.zeros(len(steps), np.int64)
        for instance in sorted(
            instances.get(opened.video_id[rows.start], ()), key=lambda own: own.start
        ):
            inside = (middles >= instance.start) & (middles < instance.end)
            labels[inside] = numbers[instance.label]
        found.append(steps)
        labelled.append(labels)
    if len(found) < 2:
        raise InputError(f"{features}: {len(found)} videos of the subset {subset}: 2 at least")
    return classes, Snippets(features=found, labels=labelled)


def split_videos(snippets: Snippets, every: int = 4) -> tuple[Snippets, Snippets]:
    """Return the videos without every fourth, and every fourth: to choose a rate on."""
    count = len(snippets.labels)
    held = [number for number in range(count) if number % every == min(every, count) - 1]
    kept = [number for number in range(count) if number not in held]
    return _some(snippets, kept), _some(snippets, held)


def _some(snippets: Snippets, numbers: Sequence[int]) -> Snippets:
    return Snippets(
        features=[snippets.features[number] for number in numbers],
        labels=[snippets.labels[number] for number in numbers],
    )


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
