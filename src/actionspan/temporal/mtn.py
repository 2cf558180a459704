"""The temporal networks that classify each step alone as start, action or end.

BSN's base TEM ("origin"), the Multipath Temporal Network (MTN), dilated convolutions, and
self-attention.
"""

from typing import Any

from torch import Tensor, nn

from actionspan.temporal.labels import KINDS
from actionspan.temporal.network import TemporalNetwork


class SqueezeExcitation(nn.Module):
    """Weigh each feature map by a gate computed from the means of all maps over time."""

    def __init__(self, maps: int, reduction: int) -> None:
        super().__init__()
        reduced = max(1, maps // reduction)
        self.squeeze, self.excite = nn.Linear(maps, reduced), nn.Linear(reduced, maps)

    def forward(self, maps: Tensor) -> Tensor:
        """Return (B, M, T) maps, each times its gate."""
        mean = maps.mean(dim=2)  # (B, M)
        gate: Tensor = self.excite(self.squeeze(mean).relu()).sigmoid()  # (B, M)
        return maps * gate[:, :, None]  # (B, M, T)


class BaseTEM(TemporalNetwork):
    """Conv(512, 3, ReLU) → Conv(512, 3, ReLU) → Conv(3, 1, sigmoid) over time.

    Other numbers of `layers` leave out or add hidden convolutions (paper 001, figure 10).
    With `squeeze`, the SE-ConvNet of MTN: a squeeze-excitation block after each hidden ReLU
    (reduction 16), and one before the sigmoid on the last three maps (reduction 1), where a gate
    below 1 keeps no probability from reaching 1.
    """

    def __init__(
        self,
        channels: int,
        *,
        hidden: int = 512,
        output_scale: float = 0.01,
        dropout: float = 0.0,
        squeeze: bool = False,
        layers: int = 3,
    ) -> None:
        super().__init__()
        self.channels, self.output_scale, self.layers = channels, output_scale, layers
        for layer in range(1, layers):
            self.add_module(f"conv{layer}", nn.Conv1d(channels, hidden, 3, padding=1))
            channels = hidden
        self.add_module(f"conv{layers}", nn.Conv1d(hidden, KINDS, kernel_size=1))
        for layer in range(1, layers + 1):
            maps, reduction = (hidden, 16) if layer < layers else (KINDS, 1)
            gate = SqueezeExcitation(maps, reduction) if squeeze else nn.Identity()
            self.add_module(f"se{layer}", gate)
        self.dropout = nn.Dropout(dropout)

    def forward(self, features: Tensor) -> Tensor:
        """Return the probabilities (B, T, 3) of features (B, T, C)."""
        maps: Tensor = features.transpose(1, 2)  # (B, C, T)
        for layer in range(1, self.layers):
            hidden = self.get_submodule(f"conv{layer}")(maps).relu()
            maps = self.dropout(self.get_submodule(f"se{layer}")(hidden))  # (B, 512, T)
        maps = self.output_scale * self.get_submodule(f"conv{self.layers}")(maps)  # (B, 3, T)
        maps = self.get_submodule(f"se{self.layers}")(maps)
        return maps.sigmoid().transpose(1, 2)  # (B, T, 3)


class MultipathDenseNet(nn.Module):
    """Dense(512, ReLU) → Dense(512, ReLU) → Dense(3, softmax) on each feature vector alone.

    The softmax makes start, action and end compete: they add up to 1 at every step, even in the
    background, so that only the sigmoids of the other path can mean "nothing here".
    """

    def __init__(self, channels: int, *, hidden: int = 512, dropout: float = 0.0) -> None:
        super().__init__()
        self.dense1 = nn.Linear(channels, hidden)
        self.dense2 = nn.Linear(hidden, hidden)
        self.dense3 = nn.Linear(hidden, KINDS)
        self.dropout = nn.Dropout(dropout)

    def forward(self, features: Tensor) -> Tensor:
        """Return the probabilities (B, T, 3) of features (B, T, C)."""
        vectors = self.dropout(self.dense1(features).relu())  # (B, T, 512)
        vectors = self.dropout(self.dense2(vectors).relu())  # (B, T, 512)
        scores: Tensor = self.dense3(vectors)  # (B, T, 3)
        return scores.softmax(dim=2)


class MTN(TemporalNetwork):
    """SE-ConvNet and Multipath DenseNet in parallel: P = W·P_conv + (1 - W)·P_dense.

    Without `squeeze` the ConvNet is plain: the paper's ablation "MTN with Multipath". The paper
    "adds by a weight parameter W" and states neither its value nor whether it is learned.
    """

    def __init__(
        self,
        channels: int,
        *,
        hidden: int = 512,
        output_scale: float = 0.01,
        fusion_weight: float = 0.5,
        dropout: float = 0.0,
        squeeze: bool = True,
    ) -> None:
        super().__init__()
        self.channels, self.fusion_weight = channels, fusion_weight
        size: dict[str, Any] = {"hidden": hidden, "dropout": dropout}
        self.conv_net = BaseTEM(channels, **size, output_scale=output_scale, squeeze=squeeze)
        self.dense_net = MultipathDenseNet(channels, **size)

    def forward(self, features: Tensor) -> Tensor:
        """Return the probabilities (B, T, 3) of features (B, T, C)."""
        conv: Tensor = self.conv_net(features)  # (B, T, 3)
        dense: Tensor = self.dense_net(features)  # (B, T, 3)
        return self.fusion_weight * conv + (1 - self.fusion_weight) * dense
