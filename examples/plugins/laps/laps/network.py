"""A network of one smoothing convolution."""

import torch
from torch import Tensor, nn

from actionspan.temporal.network import TemporalNetwork


class Smooth(TemporalNetwork):
    """A convolution over seven steps; `hidden`, `output_scale` and `dropout` are always given."""

    def __init__(self, channels: int, *, hidden: int, output_scale: float, dropout: float) -> None:
        super().__init__()
        self.channels = channels
        self.layers = nn.Conv1d(channels, 3, 7, padding=3)
        self.scale = output_scale

    def forward(self, features: Tensor) -> Tensor:
        """Return probabilities (B, T, 3) of features (B, T, C)."""
        return torch.sigmoid(self.scale * self.layers(features.mT)).mT
