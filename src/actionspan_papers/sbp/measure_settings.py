"""The settings of measuring ways to train an encoder."""

from dataclasses import dataclass
from typing import get_args

from actionspan.networks.names import ImageNetwork
from actionspan.settings import Checked, option


@dataclass(frozen=True, kw_only=True)
class MeasureSettings(Checked):
    """What is measured, and how often."""

    network: str = option("efficientnet_lite0", "encoder, untrained, its norms folded")
    input_size: int = option(112, "width and height of the pictures", unit="pixels", least=8)
    snippets: int = option(100, "of the video", least=2, most=1_000_000)
    ratios: tuple[float, ...] = option(
        (1.0, 0.5, 0.25, 0.125), "parts of the snippets that are kept", above=0, most=1, fewest=1
    )
    piece: int = option(8, "snippets that are run at once in replay and checkpointing", least=1)
    repeats: int = option(5, "steps of each way, of which the median counts", least=1)
    device: str = option("cpu", "where it is trained, such as cpu, cuda or cuda:1")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.network in get_args(ImageNetwork):
            return
        # torch, which every start of Snakemake on a cluster's nodes would wait for
        from actionspan.networks.architecture import REGISTERED

        if self.network not in REGISTERED:
            names = (*get_args(ImageNetwork), *REGISTERED)
            raise ValueError(f"network {self.network!r}: one of {', '.join(names)}")
