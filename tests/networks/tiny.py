"""A network of three convolutions, for tests in which any network will do.

Importing this module registers it as `tiny`; also in the ranks of an MPI job, which import it too.
"""

import torch
from torch import Tensor, nn

from actionspan.networks.architecture import REGISTERED, Architecture

TINY_NETWORK = "tiny"


class Tiny(nn.Module):
    """46,000 parameters. Its names of layers are those of a ResNet."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 16, 7, stride=4, padding=3)
        self.conv2 = nn.Conv2d(16, 48, 3, stride=2, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(48)
        self.conv3 = nn.Conv2d(48, 80, 3, stride=2, padding=1, bias=False)
        self.bn3 = nn.BatchNorm2d(80)
        self.fc = nn.Linear(16 + 80, classes)

    def forward(self, images: Tensor) -> Tensor:
        first = self.conv1(images).relu()  # (B, 16, H / 4, W / 4)
        hidden = self.bn2(self.conv2(first)).relu()  # (B, 48, H / 8, W / 8)
        hidden = self.bn3(self.conv3(hidden)).relu()  # (B, 80, H / 16, W / 16)
        # batch norm over two pictures hides how bright they are
        both = torch.cat([first.mean((2, 3)), hidden.mean((2, 3))], dim=1)  # (B, 96)
        scores: Tensor = self.fc(both)
        return scores


REGISTERED[TINY_NETWORK] = Architecture(
    build=Tiny, first="conv1", last="fc", mean=(127.5,) * 3, std=(60.0,) * 3
)
