"""The settings of paper 004's experiments; each section is given to the steps that use it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from actionspan.networks.names import ImageNetwork
from actionspan.settings import Checked, option


@dataclass(frozen=True, kw_only=True)
class TransformerSettings(Checked):
    """The rendered clips, the transformer, and how it is trained."""

    training_clips: int = option(720, "clips that are trained on", least=12)
    validation_clips: int = option(300, "clips that are scored", least=12)
    frames: int = option(8, "of a clip, evenly over 2.4 seconds", least=4, most=64)
    side: int = option(48, "side of their images, a multiple of 16", least=16, unit="pixels")
    width: int = option(32, "of a node, a multiple of 8", least=8)
    layers: int = option(6, "of the transformer", least=3)
    top_layers: int = option(2, "of these that always keep all backward paths", least=1)
    keep_ratio: float = option(
        0.25, "part of the backward paths that SBP keeps, of the frames that frame dropout keeps",
        above=0, most=1,
    )  # fmt: skip
    epochs: int = option(10, "of each training", least=1)
    batch_size: int = option(16, "clips in a step", least=1)
    learning_rate: float = option(0.003, "highest step size of AdamW", above=0)
    margin: float = option(
        5.0, "difference up to which two ways are equivalent", above=0, unit="points of top-1"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, unit in (("side", 16), ("width", 8)):
            if getattr(self, name) % unit:
                raise ValueError(f"{name} {getattr(self, name)}: must be a multiple of {unit}")
        if self.top_layers >= self.layers:
            raise ValueError(f"top_layers {self.top_layers}: fewer than the {self.layers} layers")


@dataclass(frozen=True, kw_only=True)
class MeasureSettings(Checked):
    """The measurements and their repetitions."""

    network: str = option("efficientnet_lite0", "encoder, untrained, its norms folded")
    input_size: int = option(112, "width and height of the images", unit="pixels", least=8)
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


@dataclass(frozen=True, kw_only=True)
class SbpSettings(Checked):
    """What holds for all experiments of detection."""

    seeds: int = option(3, "trainings of each kind", least=1, most=1_000)
    confidence: float = option(0.95, "level of the confidence intervals", above=0, below=1)
    resamples: int = option(1000, "bootstrap resamples of the videos", least=1, most=1_000_000)


@dataclass(frozen=True, kw_only=True)
class GradientSettings(Checked):
    """How near sampled gradients are to the full one."""

    videos: int = option(5, "training videos, the first by name", least=1)
    input_size: int = option(64, "side of the images", least=32, unit="pixels")
    ratios: tuple[float, ...] = option((0.5, 0.25, 0.125), "keep ratios", above=0, most=1, fewest=1)
    draws: int = option(1000, "draws of each sampler", least=2)
    components: int = option(64, "principal components that the network learns from", least=1)
    epochs: int = option(20, "of the temporal network on untuned features", least=0)
    seed: int = option(1, "of the temporal network and the draws", least=0, most=2**32 - 1)


@dataclass(frozen=True, kw_only=True)
class TuningSettings(Checked):
    """How encoders are tuned for tables 4 and 5 and figure 6."""

    input_size: int = option(48, "side of the images", least=32, unit="pixels")
    snippet_stride: int = option(3, "k: every k-th snippet is tuned on", least=1)
    components: int = option(64, "principal components that the networks learn from", least=1)
    epochs: int = option(4, "of each tuning", least=1)
    temporal_rate: float = option(0.001, "Adam's step size for the network above", above=0)
    encoder_share: float = option(
        0.1, "the encoder's step size of Adam ÷ the network's above (paper: 0.1)", above=0
    )
    batch_size: int = option(4, "videos in a step", least=1)


@dataclass(frozen=True, kw_only=True)
class DetectionSettings(Checked):
    """The comparisons of tables 4 and 5 and figure 6."""

    online_ratios: tuple[float, ...] = option(
        (0.25, 0.125), "keep ratios of SBP in table 4", above=0, most=1, fewest=1
    )
    ratios: tuple[float, ...] = option(
        (0.5, 0.25, 0.125), "keep ratios of SBP in table 5", above=0, most=1, fewest=1
    )
    importance_ratio: float = option(
        0.25, "keep ratio of importance sampling in table 5", above=0, most=1
    )
    shares: tuple[float, ...] = option(
        (1.0, 0.1, 0.01), "encoder's step size ÷ the other's, in figure 6", above=0, fewest=1
    )
    figure_ratio: float = option(0.25, "keep ratio in figure 6", above=0, most=1)


SECTIONS: dict[str, tuple[type[Any], str]] = {
    "": (SbpSettings, "paper 004's experiments: snakemake sbp_figures"),
    ".gradients": (GradientSettings, "error of sampled gradients, by sampler and keep ratio"),
    ".tuning": (TuningSettings, "how encoders are tuned for tables 4 and 5 and figure 6"),
    ".detection": (DetectionSettings, "what these compare"),
    ".transformer": (TransformerSettings, "tables 1 and 3, figures 1 and 4: a small transformer"),
}
"""The settings by the section of config.yaml under papers.sbp, and their comments."""


SAMPLING, DEPTH = "sampling", "depth"
QUANTITIES: Mapping[str, str] = {
    "activations": "activations",
    "activation_gradients": "gradients of activations",
    "parameter_gradients": "gradients of parameters",
}
"""The values of snippets in a block of the encoder, and its name."""
GRADIENT_COLUMNS = (
    *("part", "video", "snippets", "sampler", "keep_ratio", "kept", "cosine", "error"),
    *("block", "quantity", "neighbours", "distant"),
)
"""Of the table; a row of the part `sampling` has no block, one of the part `depth` no sampler."""
LAYER_KINDS = ("activations", "activations without their mean", "gradients")
