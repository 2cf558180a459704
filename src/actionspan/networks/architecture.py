"""The image networks by name: how each is built, and what it expects of its input."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from actionspan.networks.names import NO_MOTION


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """What networks differ in beside their layers.

    `mean` and `std` bring 8-bit levels to what the public weights were trained with; `first` and
    `last` are the names of the first convolution and of the classifier.
    """

    build: Callable[[int, int], nn.Module]
    first: str
    last: str
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    bgr: bool = False


_REGISTERED: dict[str, Architecture] = {}


def register(network: str, known: Architecture) -> None:
    """Add a network under a name of its own; no setting offers it (tests train small ones)."""
    _REGISTERED[network] = known


def architecture(network: str) -> Architecture:
    """Return a network's architecture; its modules are imported only here."""
    if network in _REGISTERED:
        return _REGISTERED[network]
    if network == "efficientnet_lite0":
        from actionspan.networks.efficientnet_lite0 import EfficientNetLite0

        return Architecture(
            build=EfficientNetLite0, first="_conv_stem", last="_fc", mean=(127,) * 3, std=(128,) * 3
        )
    if network == "bn_inception":
        from actionspan.networks.bn_inception import BNInception

        return Architecture(
            build=BNInception,
            first="conv1_7x7_s2",
            last="last_linear",
            mean=(104, 117, 128),
            std=(1, 1, 1),
            bgr=True,
        )
    if network == "i3d":
        from actionspan.networks.i3d import I3D

        return Architecture(
            build=I3D,
            first="conv_1a.convolution",
            last="logits",
            mean=(127.5,) * 3,
            std=(127.5,) * 3,
        )

    def resnet(channels: int, classes: int) -> nn.Module:
        import torchvision

        built: nn.Module = getattr(torchvision.models, network)(num_classes=classes)
        if channels != 3:
            built.conv1 = nn.Conv2d(channels, 64, 7, 2, 3, bias=False)
        return built

    return Architecture(
        build=resnet,
        first="conv1",
        last="fc",
        mean=(123.675, 116.28, 103.53),
        std=(58.395, 57.12, 57.375),
    )


def input_scale(
    known: Architecture, channels: int, gain: float = 1.0
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the mean and the deviation that bring 8-bit levels to what a network expects.

    Flow codes become (code - 128) · gain / s, so that no motion is 0; s is the mean deviation of
    the three colours the weights were trained with (TSN treats flow as images in the same way).

    Args:
        known: The network.
        channels: Input planes: 3 of RGB, or any other number of flow.
        gain: Factor on the flow.

    Returns:
        Two tuples of `channels` numbers.
    """
    if channels == 3:
        return known.mean, known.std
    return (float(NO_MOTION),) * channels, (sum(known.std) / 3 / gain,) * channels
