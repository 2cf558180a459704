"""Classes learned from streams of snippets, run by run."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from actionspan.arrays import Int64
from actionspan.running.determinism import deterministic, seed_torch
from actionspan.streaming.messages import Value
from actionspan.streaming.pipeline import Pipeline
from actionspan_papers.experiments import Row
from actionspan_papers.partime.networks import in_stages, perceptron
from actionspan_papers.partime.settings import (
    ClassificationSettings,
    PartimeSettings,
    Variant,
    variants,
)
from actionspan_papers.partime.snippets import (
    ORDERS,
    Order,
    Snippets,
    changed_share,
    read_snippets,
    split_videos,
    windows,
)


def classification_rows(
    features: Path,
    annotations: Path,
    subset: str,
    own: PartimeSettings,
    settings: ClassificationSettings,
) -> tuple[list[str], list[Row]]:
    """Return the classes, and a row a stream, window, way of learning, rate and seed."""
    classes, learned = read_snippets(features, annotations, "training")
    _, scored = read_snippets(features, annotations, subset)
    experiment = Experiment(learned, scored, len(classes), settings)
    with deterministic(threads=1):
        rows = [
            row
            for order in ORDERS
            for window in settings.windows
            for variant in variants(own.stages, last_only=True)
            for row in experiment.rows(order, window, variant, own.seeds)
        ]
    return classes, rows


class Experiment:
    """Continual learning of classes.

    Rates are chosen on training videos that are not learned from; scored are other videos.
    """

    def __init__(
        self, learned: Snippets, scored: Snippets, classes: int, settings: ClassificationSettings
    ) -> None:
        self._learned, self._scored, self._classes = learned, scored, classes
        self._settings = settings
        counts = np.bincount(np.concatenate(learned.labels), minlength=classes)
        present = counts > 0
        weights = np.where(present, counts.sum() / np.maximum(counts, 1) / present.sum(), 0.0)
        self._weights = torch.from_numpy(weights.astype(np.float32))

    def rows(self, order: Order, window: int, variant: Variant, seeds: int) -> list[Row]:
        """Return the row of each rate that was tried, and of each seed at the best of them."""
        named: Row = {
            "stream": order,
            "window": window,
            "stages": variant.stages,
            "gradients": variant.mode,
            "changed_share": changed_share(variant.stages, window),
        }
        kept, held = split_videos(self._learned)
        tried = {
            rate: self._accuracy(kept, held, order, window, variant, rate, seed=0)
            for rate in self._settings.learning_rates
        }
        best = max(tried, key=lambda rate: tried[rate])
        found: list[Row] = [
            {**named, "learning_rate": rate, "part": "choosing", "seed": 0, "accuracy": accuracy}
            for rate, accuracy in tried.items()
        ]
        for seed in range(1, seeds + 1):
            accuracy = self._accuracy(
                self._learned, self._scored, order, window, variant, best, seed=seed
            )
            row = {**named, "learning_rate": best, "part": "scored", "seed": seed}
            found.append({**row, "accuracy": accuracy})
        return found

    def _accuracy(
        self,
        learned: Snippets,
        scored: Snippets,
        order: Order,
        window: int,
        variant: Variant,
        rate: float,
        *,
        seed: int,
    ) -> float:
        """Return the accuracy, mean over classes, of a network after one pass over a stream."""
        x, y = learned.stream(order, self._settings.samples, seed)
        seed_torch(seed, 4)
        network = perceptron(x.shape[1], self._settings.hidden, self._classes, nn.ReLU)
        stages = in_stages(list(network), variant.stages)
        variant.freeze(stages)
        with Pipeline(
            stages,
            loss=partial(_loss, self._weights),
            optimiser=partial(_adam, rate),
            gradients=variant.gradients,
        ) as pipeline:
            for sample, target in windows(x, y, window):
                pipeline.step(sample, target)
            pipeline.drain()
        return _mean_recall(network, *scored.all())


def _loss(weights: Tensor, output: Value, target: Value) -> Tensor:
    """Return the cross-entropy in which rare classes weigh as much as common ones."""
    assert isinstance(output, Tensor)
    assert isinstance(target, Tensor)
    each = functional.cross_entropy(output, target, reduction="none")
    return (each * weights[target]).mean()


def _adam(rate: float, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=rate)


def _mean_recall(network: nn.Module, x: Tensor, labels: Int64) -> float:
    with torch.no_grad():
        found = network(x).argmax(dim=1).numpy()
    right = [float((found[labels == label] == label).mean()) for label in np.unique(labels)]
    return float(np.mean(right))
