"""Image networks in parts: as stages, and as chains that can be cut inside a residual block.

Where a skip connection is open the links of the chain pass on a pair: the tensor that is worked on
and the one that is added later. The links share the modules of the network.
"""

import sys
from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional

from actionspan.networks.efficientnet_lite0 import Block, EfficientNetLite0, Pool

Pair = tuple[Tensor, Tensor]
_Activation = Callable[[Tensor], Tensor]


def division(network: nn.Module) -> list[nn.Module] | None:
    """Return the chain that an EfficientNet-Lite0 or a ResNet is; None for any other module.

    It is made for `balance_stages(network, …, divide=division)`; the chain gives the same bits.
    """
    if isinstance(network, EfficientNetLite0):
        return _efficientnet(network)
    resnets = sys.modules.get("torchvision.models.resnet")  # costs seconds; imported if one exists
    if resnets is not None and isinstance(network, resnets.ResNet):
        return _resnet(network)
    return None


class _Unit(nn.Module):
    """A convolution, its norm and its activation: (B, C, H, W) to (B, C', H', W')."""

    def __init__(self, convolution: nn.Module, norm: nn.Module, activation: _Activation) -> None:
        super().__init__()
        self.convolution, self.norm, self.activation = convolution, norm, activation

    def forward(self, images: Tensor) -> Tensor:
        """Convolve, normalise and activate."""
        return self.activation(self.norm(self.convolution(images)))


class Fork(nn.Module):
    """The first link of a residual block: its output, and its input for the link that adds it."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, images: Tensor) -> Pair:
        """Return the pair that the block's other links take."""
        return self.inner(images), images


class Along(nn.Module):
    """A link inside a residual block: it hands the skip connection on as it is."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, pair: Pair) -> Pair:
        """Work on the first of a pair."""
        return self.inner(pair[0]), pair[1]


class Join(nn.Module):
    """The last link of a residual block: it adds the skip connection."""

    def __init__(
        self, inner: nn.Module, shortcut: nn.Module | None, activation: _Activation
    ) -> None:
        super().__init__()
        self.inner, self.shortcut, self.activation = inner, shortcut, activation

    def forward(self, pair: Pair) -> Tensor:
        """Work on the first of a pair and add the second."""
        images, skipped = pair
        out = self.inner(images)
        return self.activation(out + (self.shortcut(skipped) if self.shortcut else skipped))


def _efficientnet(network: EfficientNetLite0) -> list[nn.Module]:
    chain: list[nn.Module] = [_Unit(network._conv_stem, network._bn0, functional.relu6)]
    for block in network._blocks:
        assert isinstance(block, Block)
        units: list[nn.Module] = []
        if block.expands:
            units.append(_Unit(block._expand_conv, block._bn0, functional.relu6))
        units.append(_Unit(block._depthwise_conv, block._bn1, functional.relu6))
        units.append(_Unit(block._project_conv, block._bn2, _same))
        chain += _residual(units, None, _same) if block.adds else units
    chain.append(_Unit(network._conv_head, network._bn1, functional.relu6))
    return [*chain, nn.Sequential(Pool(), network._fc)]


def _resnet(network: nn.Module) -> list[nn.Module]:
    parts = dict(network.named_children())
    chain: list[nn.Module] = [
        _Unit(parts["conv1"], parts["bn1"], functional.relu),
        parts["maxpool"],
    ]
    for layer in ("layer1", "layer2", "layer3", "layer4"):
        for block in parts[layer].children():
            inner = dict(block.named_children())
            count = 3 if "conv3" in inner else 2
            units: list[nn.Module] = [
                _Unit(inner[f"conv{n}"], inner[f"bn{n}"], functional.relu if n < count else _same)
                for n in range(1, count + 1)
            ]
            chain += _residual(units, inner.get("downsample"), functional.relu)
    return [*chain, nn.Sequential(parts["avgpool"], nn.Flatten(), parts["fc"])]


def _residual(
    units: list[nn.Module], shortcut: nn.Module | None, activation: _Activation
) -> list[nn.Module]:
    first, *middle, last = units
    return [Fork(first), *map(Along, middle), Join(last, shortcut, activation)]


def _same(images: Tensor) -> Tensor:
    return images


def stages(network: nn.Module) -> list[nn.ModuleList]:
    """Return the modules with parameters of each stage, in the order in which they compute.

    EfficientNet-Lite0: stem, the groups of blocks that begin with a stride, head. ResNets: stem and
    four layers. Other networks: each child that has parameters.
    """
    if isinstance(network, EfficientNetLite0):
        groups = [[network._conv_stem, network._bn0]]
        for block in network._blocks:
            if block._depthwise_conv.stride[0] > 1 or len(groups) == 1:  # type: ignore[index]
                groups.append([])
            groups[-1].append(block)
        groups.append([network._conv_head, network._bn1])
        return [nn.ModuleList(group) for group in groups]
    children = [[child] for child in network.children() if any(True for _ in child.parameters())]
    first = dict(network.named_children())
    if "conv1" in first and "layer1" in first and "bn1" in first:
        stem = [first["conv1"], first["bn1"]]
        children = [stem, *[each for each in children if each[0] not in stem]]
    return [nn.ModuleList(group) for group in children]
