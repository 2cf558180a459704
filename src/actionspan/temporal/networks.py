"""The base class of temporal networks, and the register that finds a network by its name."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from actionspan.temporal.labels import KINDS
from actionspan.temporal.loss import BoundaryLoss, boundary_loss
from actionspan.temporal.settings import ModelName, TemporalSettings

SHAPE = ("hidden", "output_scale", "dropout")  # the settings that every network takes


class Segments(NamedTuple):
    """Segments (M, 2) in 0…1 of a row, start ≤ end, best first, and their scores (M,) in 0…1."""

    segments: Tensor
    scores: Tensor


class TemporalNetwork(nn.Module):
    """Takes features (B, T, C) and returns probabilities (B, T, 3) of start, action and end."""

    channels: int
    most_steps = 8192
    """Of a video or window that a model file may ask for."""
    columns = KINDS
    """Of the labels that `loss` takes: `KINDS`, or `targets.COLUMNS` with all that are known."""
    cross_fitted = False
    """Whether it has members each of which leaves out a part of the training videos."""
    look_ahead: int | None = None
    """Steps behind its own that a probability depends on; None: it may depend on all of them."""
    look_back: int | None = None
    """Steps before its own that a probability depends on; None: as there."""

    def loss(
        self, features: Tensor, labels: Tensor, whole: Tensor | None = None, soft: bool = False
    ) -> BoundaryLoss:
        """Return the loss of features (S, T, C) with labels (S, T, `columns`).

        `whole` (B, T, `columns`) are the labels of the full batch where these rows are a share of
        it: the result is then their part of its loss. `soft` is that of `weighted_binary_loss`.
        """
        return boundary_loss(self(features), labels, whole, soft)

    def segments(self, features: Tensor) -> list[Segments] | None:
        """Return the segments that the network finds itself in each row of features (B, T, C).

        None: it finds none, and candidates are made of its probabilities.
        """
        return None

    def without(self, features: Tensor, part: int) -> Tensor:
        """Return the probabilities (B, T, 3) by what was trained without a part of the videos."""
        raise ValueError("a network that is not cross-fitted sees every video alike")

    def add_noise(self, video: Tensor, deviation: float, generator: torch.Generator) -> None:
        """Add normal noise to a video's features (T, C) in place."""
        video += deviation * torch.randn(video.shape, generator=generator)


Network = TypeVar("Network", bound=type[TemporalNetwork])
NETWORKS: dict[ModelName, Callable[[int, TemporalSettings], TemporalNetwork]] = {}
CLASSES: dict[ModelName, type[TemporalNetwork]] = {}


def network(name: ModelName, *more: str, **fixed: Any) -> Callable[[Network], Network]:
    """Register the class below; it takes the settings `SHAPE` and `more`, and always `fixed`."""

    def register(kind: Network) -> Network:
        def build(channels: int, settings: TemporalSettings) -> TemporalNetwork:
            given = {key: getattr(settings, key) for key in (*SHAPE, *more)}
            return kind(channels, **given, **fixed)

        NETWORKS[name] = build
        CLASSES[name] = kind
        return kind

    return register
