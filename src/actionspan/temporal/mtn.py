"""The temporal networks: BSN's base TEM ("origin") and the Multipath Temporal Network (MTN).

All take features (B, T, C) and return probabilities (B, T, 3) of start, action and end.
"""

from torch import Tensor, nn

from actionspan.temporal.attention import AttentionTEM
from actionspan.temporal.labels import KINDS
from actionspan.temporal.settings import ModelName, TemporalSettings
from actionspan.temporal.tcn import DilatedTEM


class SqueezeExcitation(nn.Module):
    """Weigh each feature map by a gate computed from the means of all maps over time."""

    def __init__(self, maps: int, reduction: int) -> None:
        super().__init__()
        self.squeeze = nn.Linear(maps, max(1, maps // reduction))
        self.excite = nn.Linear(max(1, maps // reduction), maps)

    def forward(self, maps: Tensor) -> Tensor:
        """Return (B, M, T) maps, each times its gate."""
        mean = maps.mean(dim=2)  # (B, M)
        gate: Tensor = self.excite(self.squeeze(mean).relu()).sigmoid()  # (B, M)
        return maps * gate[:, :, None]  # (B, M, T)


class BaseTEM(nn.Module):
    """Conv(512, 3, ReLU) → Conv(512, 3, ReLU) → Conv(3, 1, sigmoid) over time.

    With `squeeze`, the SE-ConvNet of MTN: a squeeze-excitation block after every convolution,
    behind the ReLU (reduction 16) and, at the three last maps (reduction 1), before the sigmoid,
    so that a gate below 1 keeps no probability from reaching 1.

    `layers` counts the convolutions, the last included. MTN's extension compares 2, 3 and 4 of
    them (paper 001, figure 10): it removes or adds one of the hidden ones.
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
        self.channels = channels
        self.output_scale = output_scale
        self.layers = layers
        widths = [channels, *[hidden] * (layers - 1)]
        for layer in range(1, layers):
            conv = nn.Conv1d(widths[layer - 1], hidden, kernel_size=3, padding=1)
            self.add_module(f"conv{layer}", conv)
        self.add_module(f"conv{layers}", nn.Conv1d(widths[-1], KINDS, kernel_size=1))
        for layer in range(1, layers):
            gate = SqueezeExcitation(hidden, reduction=16) if squeeze else nn.Identity()
            self.add_module(f"se{layer}", gate)
        last = SqueezeExcitation(KINDS, reduction=1) if squeeze else nn.Identity()
        self.add_module(f"se{layers}", last)
        self.dropout = nn.Dropout(dropout)

    def forward(self, features: Tensor) -> Tensor:
        """Return the probabilities (B, T, 3) of features (B, T, C)."""
        maps: Tensor = features.transpose(1, 2)  # (B, C, T)
        parts = [
            (self.get_submodule(f"conv{layer}"), self.get_submodule(f"se{layer}"))
            for layer in range(1, self.layers + 1)
        ]
        for conv, gate in parts[:-1]:
            maps = self.dropout(gate(conv(maps).relu()))  # (B, 512, T)
        conv, gate = parts[-1]
        maps = gate(self.output_scale * conv(maps))  # (B, 3, T)
        return maps.sigmoid().transpose(1, 2)  # (B, T, 3)


class MultipathDenseNet(nn.Module):
    """Dense(512, ReLU) → Dense(512, ReLU) → Dense(3, softmax) on each feature vector alone.

    The softmax makes start, action and end compete: they add up to 1 at every step, background
    too, so that only the sigmoids of the other path can say "none of them".
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


class MTN(nn.Module):
    """SE-ConvNet beside Multipath DenseNet: P = W·P_conv + (1 - W)·P_dense.

    Without `squeeze`, the paper's ablation "MTN with Multipath": a plain ConvNet beside it.

    (The paper "adds by a weight parameter W" and says neither its value nor whether it is learned.)
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
        self.channels = channels
        self.fusion_weight = fusion_weight
        self.conv_net = BaseTEM(
            channels, hidden=hidden, output_scale=output_scale, dropout=dropout, squeeze=squeeze
        )
        self.dense_net = MultipathDenseNet(channels, hidden=hidden, dropout=dropout)

    def forward(self, features: Tensor) -> Tensor:
        """Return the probabilities (B, T, 3) of features (B, T, C)."""
        conv: Tensor = self.conv_net(features)  # (B, T, 3)
        dense: Tensor = self.dense_net(features)  # (B, T, 3)
        return self.fusion_weight * conv + (1 - self.fusion_weight) * dense


TemporalNetwork = BaseTEM | MTN | AttentionTEM | DilatedTEM


def build_model(name: ModelName, channels: int, settings: TemporalSettings) -> TemporalNetwork:
    """Build a network by its name.

    `origin` is BSN's TEM, `cnn2` and `cnn4` the same with 2 and 4 convolutions; `se` is the
    SE-ConvNet alone, `dense` TEM beside the Multipath DenseNet, `mtn` SE-ConvNet beside it.
    `attention` and `tcn` are of neither paper.
    """
    hidden, scale, dropout = settings.hidden, settings.output_scale, settings.dropout
    if name in ("attention", "tcn"):
        network = AttentionTEM if name == "attention" else DilatedTEM
        return network(channels, hidden=hidden, output_scale=scale, dropout=dropout)
    squeeze = name in ("se", "mtn")
    if name in ("dense", "mtn"):
        return MTN(
            channels,
            hidden=hidden,
            output_scale=scale,
            fusion_weight=settings.fusion_weight,
            dropout=dropout,
            squeeze=squeeze,
        )
    return BaseTEM(
        channels,
        hidden=hidden,
        output_scale=scale,
        dropout=dropout,
        squeeze=squeeze,
        layers={"cnn2": 2, "cnn4": 4}.get(name, 3),
    )
