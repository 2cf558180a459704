"""A temporal network of dilated convolutions with residual connections."""

from torch import Tensor, nn

from actionspan.temporal.labels import KINDS
from actionspan.temporal.networks import TemporalNetwork, network

DILATIONS = (1, 2, 4, 8)
REACH = 1 + sum(DILATIONS)  # steps to each side that an output sees


@network("tcn")
class DilatedTEM(TemporalNetwork):
    """Conv(512, 3) → four times + Conv(512, 3, dilated) of the ReLU → Conv(3, 1, sigmoid).

    Dilations of 1, 2, 4 and 8 let an output see 16 steps to each side (BSN's TEM: 2). Each layer
    only adds to the one before (residual), so that depth does not stop the gradient. Away from the
    ends of a sequence of any length, the outputs move with the features.
    """

    def __init__(
        self, channels: int, *, hidden: int = 512, output_scale: float = 0.01, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.channels = channels
        self.output_scale = output_scale
        self.first = nn.Conv1d(channels, hidden, kernel_size=3, padding=1)
        self.layers = nn.ModuleList(
            nn.Conv1d(hidden, hidden, kernel_size=3, padding=dilation, dilation=dilation)
            for dilation in DILATIONS
        )
        self.last = nn.Conv1d(hidden, KINDS, kernel_size=1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, features: Tensor) -> Tensor:
        """Return the probabilities (B, T, 3) of features (B, T, C)."""
        maps: Tensor = self.first(features.transpose(1, 2))  # (B, 512, T)
        for layer in self.layers:
            maps = maps + layer(self.dropout(maps.relu()))  # (B, 512, T)
        scores: Tensor = self.output_scale * self.last(self.dropout(maps.relu()))  # (B, 3, T)
        return scores.sigmoid().transpose(1, 2)  # (B, T, 3)
