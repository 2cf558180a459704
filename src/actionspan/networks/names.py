"""The names of the image networks, quick to import."""

from typing import Literal

ImageNetwork = Literal[
    "efficientnet_lite0",
    "resnet18",
    "resnet34",
    "resnet50",
    "resnet101",
    "resnet152",
    "bn_inception",
]
NO_MOTION = 128  # the 8-bit code of no motion in a plane of flow
PACKAGED = "packaged"  # weights: those that come with the network, as where none are named
