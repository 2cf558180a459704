"""BSN's TEM with two and with four convolutions (paper 001, figure 10)."""

from torch import Tensor, nn

from actionspan.temporal.labels import KINDS
from actionspan.temporal.networks import TemporalNetwork, network


@network("cnn2", layers=2)
@network("cnn4", layers=4)
class DepthTEM(TemporalNetwork):
    """`BaseTEM` with one hidden convolution removed or added; `layers` counts the last too."""

    def __init__(
        self,
        channels: int,
        *,
        layers: int,
        hidden: int = 512,
        output_scale: float = 0.01,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.channels = channels
        self.output_scale = output_scale
        self.names = [f"conv{layer}" for layer in range(1, layers + 1)]  # as in BaseTEM's files
        for name in self.names[:-1]:
            self.add_module(name, nn.Conv1d(channels, hidden, kernel_size=3, padding=1))
            channels = hidden
        self.add_module(self.names[-1], nn.Conv1d(hidden, KINDS, kernel_size=1))
        self.dropout = nn.Dropout(dropout)

    def forward(self, features: Tensor) -> Tensor:
        """Return the probabilities (B, T, 3) of features (B, T, C)."""
        maps: Tensor = features.transpose(1, 2)  # (B, C, T)
        for name in self.names[:-1]:
            maps = self.dropout(self.get_submodule(name)(maps).relu())  # (B, 512, T)
        maps = self.output_scale * self.get_submodule(self.names[-1])(maps)  # (B, 3, T)
        return maps.sigmoid().transpose(1, 2)  # (B, T, 3)
