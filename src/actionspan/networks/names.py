"""The names of the image networks, quick to import."""

import re
from typing import TYPE_CHECKING, Literal, get_args

from actionspan.plugins import plugins

ImageNetwork = Literal[
    "efficientnet_lite0",
    "efficientnet_lite2",
    "resnet18",
    "resnet34",
    "resnet50",
    "resnet101",
    "resnet152",
    "bn_inception",
]
if not TYPE_CHECKING:  # a flag's choices and the schema's values are made from the type
    _OURS = get_args(ImageNetwork)
    ImageNetwork = Literal[(*_OURS, *plugins("encoders", _OURS))]
FROM_TIMM, FROM_TRANSFORMERS = "timm:", "hf:"
HUB = rf"({FROM_TIMM}|{FROM_TRANSFORMERS}).+|.*/.*"
"""Names of networks that timm or transformers bring, or the path of one (a pattern)."""
CLIP_HUB = rf"(?!{FROM_TIMM})({HUB})"
"""Networks of clips; timm has none."""
NO_MOTION = 128  # the 8-bit code of no motion in a plane of flow
TUNED = "tuned_encoder"  # the folder of such a network next to its model.safetensors of `finetune`
PACKAGED = "packaged"  # weights: those that come with the network, as where none are named


def is_hub(encoder: str) -> bool:
    """Return whether a network is one that timm or transformers bring."""
    return re.fullmatch(HUB, encoder) is not None
