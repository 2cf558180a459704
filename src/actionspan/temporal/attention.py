"""A temporal network of self-attention: every step of a video sees every other."""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from actionspan.temporal.labels import KINDS
from actionspan.temporal.networks import TemporalNetwork, network

HEADS = 4
BLOCKS = 2
LONGEST_WAVE = 10000.0  # of the positions, as a multiple of 2π steps (Vaswani et al., 2017)


def positions(steps: int, width: int) -> Tensor:
    """Return the sinusoidal code of each step (T, D): D / 2 sines, then as many cosines.

    `width`, D, is even. A code depends on the number of its step alone, so that sequences may have
    any length.
    """
    rates = torch.exp(-math.log(LONGEST_WAVE) / width * torch.arange(0, width, 2))  # (D/2,)
    angles = torch.arange(steps)[:, None] * rates  # (T, D/2)
    return torch.cat([angles.sin(), angles.cos()], dim=1)  # (T, D)


class AttentionBlock(nn.Module):
    """Self-attention, then two dense layers on each step; each adds to its input.

    Both normalise their input, not their output (pre-norm), so that the sum runs through the block
    untouched and training needs no warm-up.
    """

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attend = nn.Linear(width, 3 * width)
        self.merge = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.dense1 = nn.Linear(width, 2 * width)
        self.dense2 = nn.Linear(2 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, steps: Tensor) -> Tensor:
        """Return (B, T, D) of (B, T, D)."""
        three = self.attend(self.norm1(steps)).unflatten(2, (3, HEADS, -1))  # (B, T, 3, H, D/H)
        query, key, value = three.permute(2, 0, 3, 1, 4)  # (B, H, T, D/H) each
        seen = scaled_dot_product_attention(query, key, value)  # (B, H, T, D/H)
        steps = steps + self.dropout(self.merge(seen.transpose(1, 2).flatten(2)))  # (B, T, D)
        hidden = self.dropout(self.dense1(self.norm2(steps)).relu())  # (B, T, 2D)
        output: Tensor = steps + self.dropout(self.dense2(hidden))  # (B, T, D)
        return output


@network("attention")
class AttentionTEM(TemporalNetwork):
    """Conv(D, 3) + position → two attention blocks → Dense(3, sigmoid), D half of `hidden`.

    The convolution shows each step its neighbours, where a boundary is visible; attention compares
    distant steps, since an action may be long. A sequence may have any length; memory for training
    grows with its square where the attention kernel keeps all pairs.
    """

    def __init__(
        self, channels: int, *, hidden: int = 512, output_scale: float = 0.01, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.channels = channels
        self.output_scale = output_scale
        self.width = HEADS * max(1, hidden // (2 * HEADS))
        self.conv = nn.Conv1d(channels, self.width, kernel_size=3, padding=1)
        self.blocks = nn.ModuleList(AttentionBlock(self.width, dropout) for _ in range(BLOCKS))
        self.norm = nn.LayerNorm(self.width)
        self.dense = nn.Linear(self.width, KINDS)
        self.dropout = nn.Dropout(dropout)

    def forward(self, features: Tensor) -> Tensor:
        """Return the probabilities (B, T, 3) of features (B, T, C)."""
        steps = self.conv(features.transpose(1, 2)).transpose(1, 2)  # (B, T, D)
        code = positions(features.shape[1], self.width).to(steps)  # (T, D)
        steps = self.dropout(steps + code)  # (B, T, D)
        for block in self.blocks:
            steps = block(steps)  # (B, T, D)
        scores: Tensor = self.output_scale * self.dense(self.norm(steps))  # (B, T, 3)
        return scores.sigmoid()
