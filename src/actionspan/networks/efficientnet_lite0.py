"""EfficientNet-Lite (Tan and Le; no squeeze-and-excitation, ReLU6): 0 comes with the package."""

import math
from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional

# Stages: repeats, kernel, stride of the first block, expansion, output maps.
_STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
_STEM = 32  # maps, at any width, as in the head


class SameConv2d(nn.Conv2d):
    """A convolution padded as TensorFlow's SAME does."""

    def forward(self, images: Tensor) -> Tensor:
        """Convolve (B, C, H, W) to (B, out, ceil(H / stride), ceil(W / stride))."""
        padding = self.kernel_size[0] // 2 if self.stride[0] == 1 else 0
        if not padding:
            images = pad_same(images, self.kernel_size, self.stride)
        return functional.conv2d(
            images, self.weight, self.bias, self.stride, padding, groups=self.groups
        )


def _norm(maps: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(maps, eps=1e-3)


class Block(nn.Module):
    """An inverted residual: expand 1×1, depthwise k×k, project 1×1, add when shapes agree."""

    def __init__(self, kernel: int, stride: int, expansion: int, maps_in: int, maps: int) -> None:
        super().__init__()
        middle = maps_in * expansion
        if expansion > 1:
            self._expand_conv = nn.Conv2d(maps_in, middle, 1, bias=False)
            self._bn0 = _norm(middle)
        self._depthwise_conv = SameConv2d(middle, middle, kernel, stride, groups=middle, bias=False)
        self._bn1 = _norm(middle)
        self._project_conv = nn.Conv2d(middle, maps, 1, bias=False)
        self._bn2 = _norm(maps)
        self.expands = expansion > 1
        self.adds = stride == 1 and maps_in == maps

    def forward(self, images: Tensor) -> Tensor:
        """Return (B, maps, H / stride, W / stride); `division` has these steps one by one."""
        x = images
        if self.expands:
            x = functional.relu6(self._bn0(self._expand_conv(x)))  # (B, 6 C, H, W)
        x = functional.relu6(self._bn1(self._depthwise_conv(x)))  # (B, 6 C, H / stride, …)
        out: Tensor = self._bn2(self._project_conv(x))  # (B, maps, H / stride, …)
        return out + images if self.adds else out


class Pool(nn.Module):
    """The mean over the image, (B, C, H, W) to (B, C)."""

    def forward(self, images: Tensor) -> Tensor:
        """Average."""
        return images.mean(dim=(2, 3))


class EfficientNetLite0(nn.Module):
    """(B, C, 224, 224) images to (B, classes) scores.

    Parameter names are as in the public PyTorch checkpoint, which was converted from
    TensorFlow: hence SAME padding and a batch-norm epsilon of 1e-3.
    """

    features = 1280
    width = depth = 1.0  # factors on maps, and on the repeats of all stages but the outer ones

    def __init__(self, channels: int = 3, classes: int = 1000) -> None:
        super().__init__()
        self._conv_stem = SameConv2d(channels, _STEM, 3, 2, bias=False)
        self._bn0 = _norm(_STEM)
        self._blocks, maps = nn.ModuleList(), _STEM
        for place, (repeats, kernel, stride, expansion, unscaled) in enumerate(_STAGES):
            before, maps = maps, 8 * round(unscaled * self.width / 8)
            if 0 < place < len(_STAGES) - 1:
                repeats = math.ceil(repeats * self.depth)
            for step, planes in [(stride, before), *[(1, maps)] * (repeats - 1)]:
                self._blocks.append(Block(kernel, step, expansion, planes, maps))
        self._conv_head = nn.Conv2d(maps, self.features, 1, bias=False)
        self._bn1 = _norm(self.features)
        self._fc: nn.Module = nn.Linear(self.features, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Return the class scores before softmax, (B, classes)."""
        x = functional.relu6(self._bn0(self._conv_stem(images)))  # (B, 32, 112, 112)
        for block in self._blocks:
            x = block(x)
        x = functional.relu6(self._bn1(self._conv_head(x)))  # (B, 1280, 7, 7)
        scores: Tensor = self._fc(x.mean(dim=(2, 3)))
        return scores

    def layers(self) -> list[nn.Module]:
        """Return modules that compute `forward` one after the other, to the bit.

        They share this network's parameters; its batch norms may be folded.
        """
        stem = nn.Sequential(self._conv_stem, self._bn0, nn.ReLU6())
        head = nn.Sequential(self._conv_head, self._bn1, nn.ReLU6(), Pool(), self._fc)
        return [stem, *self._blocks, head]


class EfficientNetLite2(EfficientNetLite0):
    """The same, wider and deeper: made for 260 pixels a side."""

    width, depth = 1.1, 1.2


def pad_same(batch: Tensor, kernel: Sequence[int], stride: Sequence[int]) -> Tensor:
    """Pad (B, C, …) with zeros so that each output length is ceil(input / stride).

    An odd pixel goes to the end.
    """
    padding: list[int] = []
    for size, width, step in zip(batch.shape[2:], kernel, stride, strict=True):
        total = max((-(-size // step) - 1) * step + width - size, 0)
        padding = [total // 2, total - total // 2, *padding]  # torch counts from the last axis
    return functional.pad(batch, padding) if any(padding) else batch
