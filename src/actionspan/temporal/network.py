"""The base class of temporal networks."""

import torch
from torch import Tensor, nn

from actionspan.temporal.labels import KINDS
from actionspan.temporal.loss import BoundaryLoss, boundary_loss


class TemporalNetwork(nn.Module):
    """Takes features (B, T, C) and returns probabilities (B, T, 3) of start, action and end."""

    channels: int
    columns = KINDS  # of the labels that `loss` takes; `labels.COLUMNS`: all that is known
    cross_fitted = False  # whether its members each leave out a part of the training videos
    look_ahead: int | None = None  # steps after its own that a probability depends on; None: all
    look_back: int | None = None  # steps before its own that a probability depends on; None: all

    def loss(self, features: Tensor, labels: Tensor, batch: Tensor | None = None) -> BoundaryLoss:
        """Return the loss of features (S, T, C) with labels (S, T, `columns`).

        `batch` (B, T, `columns`) are the labels of the full batch where these rows are a share of
        it: the result is then their part of its loss.
        """
        return boundary_loss(self(features), labels, batch)

    def without(self, features: Tensor, part: int) -> Tensor:
        """Return the probabilities (B, T, 3) of the member trained without a part of the videos."""
        raise ValueError("a network that is not cross-fitted sees every video alike")

    def add_noise(self, video: Tensor, deviation: float, generator: torch.Generator) -> None:
        """Add normal noise to a video's features (T, C) in place."""
        video += deviation * torch.randn(video.shape, generator=generator)
