"""The temporal networks: BSN's base TEM ("origin") and the Multipath Temporal Network (MTN)."""

from torch import Tensor, nn

import actionspan.temporal.attention
import actionspan.temporal.bmn
import actionspan.temporal.depth
import actionspan.temporal.pyramid
import actionspan.temporal.span
import actionspan.temporal.stream
import actionspan.temporal.tcn  # noqa: F401 - these modules register their networks
from actionspan.temporal.labels import KINDS
from actionspan.temporal.networks import NETWORKS, TemporalNetwork, network
from actionspan.temporal.settings import ModelName, TemporalSettings


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


@network("origin")
@network("se", squeeze=True)
class BaseTEM(TemporalNetwork):
    """Conv(512, 3, ReLU) → Conv(512, 3, ReLU) → Conv(3, 1, sigmoid) over time.

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
    ) -> None:
        super().__init__()
        self.channels = channels
        self.output_scale = output_scale
        self.conv1 = nn.Conv1d(channels, hidden, kernel_size=3, padding=1)
        self.conv2 = nn.Conv1d(hidden, hidden, kernel_size=3, padding=1)
        self.conv3 = nn.Conv1d(hidden, KINDS, kernel_size=1)
        self.se1 = SqueezeExcitation(hidden, reduction=16) if squeeze else nn.Identity()
        self.se2 = SqueezeExcitation(hidden, reduction=16) if squeeze else nn.Identity()
        self.se3 = SqueezeExcitation(KINDS, reduction=1) if squeeze else nn.Identity()
        self.dropout = nn.Dropout(dropout)

    def forward(self, features: Tensor) -> Tensor:
        """Return the probabilities (B, T, 3) of features (B, T, C)."""
        maps: Tensor = features.transpose(1, 2)  # (B, C, T)
        maps = self.dropout(self.se1(self.conv1(maps).relu()))  # (B, 512, T)
        maps = self.dropout(self.se2(self.conv2(maps).relu()))  # (B, 512, T)
        maps = self.se3(self.output_scale * self.conv3(maps))  # (B, 3, T)
        return maps.sigmoid().transpose(1, 2)  # (B, T, 3)


class MultipathDenseNet(nn.Module):
    """Dense(512, ReLU) → Dense(512, ReLU) → Dense(3, softmax) on each feature vector alone.

    The softmax makes start, action and end compete: they add up to 1 at every step, even in the
    background, so that only the sigmoids of the other path can say "nothing here".
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


@network("dense", "fusion_weight", squeeze=False)
@network("mtn", "fusion_weight", squeeze=True)
class MTN(TemporalNetwork):
    """SE-ConvNet and Multipath DenseNet in parallel: P = W·P_conv + (1 - W)·P_dense.

    Without `squeeze` the ConvNet is plain: the paper's ablation "MTN with Multipath". The paper
    "adds by a weight parameter W" and says neither its value nor whether it is learned.
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


def build_model(name: ModelName, channels: int, settings: TemporalSettings) -> TemporalNetwork:
    """Build the network of a name for features (B, T, channels)."""
    return NETWORKS[name](channels, settings)
