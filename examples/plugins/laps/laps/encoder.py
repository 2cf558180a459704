"""An encoder of sixteen maps, averaged over the image."""

from torch import Tensor, nn

from actionspan.networks.architecture import Architecture


class GreyMeans(nn.Module):
    """One convolution, and the means of its maps."""

    def __init__(self, planes: int, classes: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(planes, 16, 7, stride=4)
        self.last = nn.Linear(16, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Return the class scores of images (B, planes, H, W)."""
        return self.last(self.first(images).relu().mean((2, 3)))


GREY_MEANS = Architecture(GreyMeans, "first", "last", (127.5,) * 3, (127.5,) * 3)
