"""The image networks by name: how each is built, and what it expects of its input."""

from collections.abc import Callable
from typing import NamedTuple

from torch import nn

from actionspan.errors import InputError
from actionspan.plugins import load, plugins

Levels = tuple[float, float, float]


class Architecture(NamedTuple):
    """How networks differ, apart from their layers."""

    build: Callable[[int, int], nn.Module]  # from the numbers of input planes and of classes
    first: str  # name of the first convolution
    last: str  # name of the classifier
    mean: Levels  # of the 8-bit levels that the public weights were trained with
    std: Levels
    bgr: bool = False


REGISTERED: dict[str, Architecture] = {}  # networks that no setting offers: tests train small ones


def architecture(network: str) -> Architecture:
    """Return a network's architecture; its modules are imported only here.

    Raises:
        InputError: It is a plug-in's, and cannot be imported or is no `Architecture`.
    """
    if network in REGISTERED:
        return REGISTERED[network]
    if network in plugins("encoders"):
        given = load("encoders", network)
        if not isinstance(given, Architecture):
            raise InputError(f"plug-ins: actionspan.encoders: {network}: not an Architecture")
        return given
    if network == "efficientnet_lite0":
        from actionspan.networks.efficientnet_lite0 import EfficientNetLite0

        return Architecture(EfficientNetLite0, "_conv_stem", "_fc", (127,) * 3, (128,) * 3)
    if network == "bn_inception":
        from actionspan.networks.bn_inception import BNInception

        mean, std = (104, 117, 128), (1, 1, 1)
        return Architecture(BNInception, "conv1_7x7_s2", "last_linear", mean, std, bgr=True)
    if network == "i3d":
        from actionspan.networks.i3d import I3D

        return Architecture(I3D, "conv_1a.convolution", "logits", (127.5,) * 3, (127.5,) * 3)

    def resnet(channels: int, classes: int) -> nn.Module:
        import torchvision

        built: nn.Module = getattr(torchvision.models, network)(num_classes=classes)
        if channels != 3:
            built.conv1 = nn.Conv2d(channels, 64, 7, 2, 3, bias=False)
        return built

    imagenet = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
    return Architecture(resnet, "conv1", "fc", *imagenet)
