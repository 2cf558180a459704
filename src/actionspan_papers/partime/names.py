"""The networks whose speed is measured, by name; nothing here costs an import."""

from collections.abc import Mapping

from actionspan_papers.partime.published import Network

PLAIN, POOLED = "convolutions", "pooled convolutions"
ENCODERS = ("resnet18", "efficientnet_lite0")
KINDS: Mapping[str, Network] = {
    PLAIN: "plain",
    POOLED: "pooled",
    **dict.fromkeys(ENCODERS, "resnet"),
}
"""Their like in the paper."""
