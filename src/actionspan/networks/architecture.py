"""The image networks by name: how each is built, and how 8-bit images become its input."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from actionspan.errors import InputError
from actionspan.networks.names import NO_MOTION
from actionspan.plugins import load, plugins

Levels = tuple[float, float, float]


class Architecture(NamedTuple):
    """The properties of networks other than their layers."""

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
        InputError: It is a plug-in's, and cannot be imported or is not an `Architecture`.
    """
    if network in REGISTERED:
        return REGISTERED[network]
    if network in plugins("encoders"):
        given = load("encoders", network)
        if not isinstance(given, Architecture):
            raise InputError(f"plug-ins: actionspan.encoders: {network}: not an Architecture")
        return given
    if network in ("efficientnet_lite0", "efficientnet_lite2"):
        from actionspan.networks.efficientnet_lite0 import EfficientNetLite0, EfficientNetLite2

        lite = EfficientNetLite0 if network.endswith("0") else EfficientNetLite2
        return Architecture(lite, "_conv_stem", "_fc", (127,) * 3, (128,) * 3)
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


class Inputs:
    """Turns batches of bytes into batches of floats, as the weights of a network expect them.

    Flow codes become (code - 128) · gain / s, so that no motion is 0; s is the mean deviation of
    the three colours the weights were trained with (TSN treats flow as images in the same way).

    `channels` are 3 of RGB, or any other number of planes of flow, on which `gain` is a factor.
    """

    def __init__(
        self, network: Architecture, channels: int, device: torch.device, gain: float = 1.0
    ) -> None:
        mean: Sequence[float] = network.mean
        std: Sequence[float] = network.std
        if channels != 3:
            mean, std = [NO_MOTION] * channels, [sum(std) / 3 / gain] * channels
        self.bgr = network.bgr and channels == 3
        self.device = device
        self.mean = torch.tensor(mean, dtype=torch.float32, device=device)
        self.std = torch.tensor(std, dtype=torch.float32, device=device)

    def __call__(self, batch: Tensor) -> Tensor:
        """Convert (B, …, C) uint8, RGB or flow, to (B, C, …) float32 in channels-last memory."""
        if self.bgr:
            batch = batch.flip(-1)
        planes = batch.to(self.device).movedim(-1, 1)  # (B, C, …); bytes move faster than floats
        ones = [1] * (planes.ndim - 2)
        return (planes.float() - self.mean.view(-1, *ones)) / self.std.view(-1, *ones)
