"""The settings of fine-tuning, and the flags of the steps that plan or run it."""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from actionspan.features.settings import EncoderSettings, RescaleSettings
from actionspan.settings import Checked, add_settings, from_arguments, knobs_of, option
from actionspan.temporal.settings import MODELS, ModelName, TemporalSettings
from actionspan.training.settings import Keep
from actionspan.video.settings import JPEG_BLOCK, JPEG_LONGEST

HeadName = Literal["recurrent", "attention"]
HEADS: tuple[HeadName, ...] = get_args(HeadName)
Stream = Literal["rgb", "flow"]
WayName = Literal["sbp", "full", "frozen", "frame_dropout", "checkpoint", "bank", "sbp_checkpoint"]
SamplerName = Literal[
    "uniform_random", "fixed", "diverse_feature", "diverse_gradient", "importance"
]
BY_GRADIENT = ("diverse_gradient", "importance")  # samplers that need replay
_STEPPED = tuple(name for name, each in MODELS.items() if each.on_steps)
"""The temporal networks with a loss on start, action and end of each step."""
# the settings of the features stage that choose the networks
ENCODERS = (
    *("rgb_encoder", "rgb_weights", "rgb_layer", "rgb_pooling", "rgb_digest"),
    *("flow_encoder", "flow_weights", "flow_gain", "device"),
)
# settings of the temporal network that FinetuneSettings replace, or that belong to other networks,
# to features or to a schedule
WITHOUT_TEMPORAL = (
    *("epochs", "batch_size", "keep", "average_epochs", "seed"),
    *("members", "look_ahead", "feature_noise", "window_coverage"),
    *("decay_epochs", "decay_factor"),
)


@dataclass(frozen=True, kw_only=True)
class FinetuneSettings(Checked):
    """How encoders are trained together with a temporal network."""

    way: WayName = option(
        "sbp",
        "sbp: gradients of a part of the snippets; sbp_checkpoint: the same, computed twice to "
        "save memory; full: of all; checkpoint: of all, computed twice; frame_dropout: the others "
        "are not looked at; bank: the others' features are remembered; frozen: no gradient",
    )
    streams: tuple[Stream, ...] = option(("rgb",), "encoders that are tuned", fewest=1)
    keep_ratio: float | Literal["auto"] = option(
        0.25,
        "r, part of a video's snippets with a computed gradient; auto: the largest that fits",
        above=0,
        most=1,
        also="auto",
    )
    sampler: SamplerName = option(
        "uniform_random",
        "which snippets: at random in chunks of time, the first of each chunk, in chunks by the "
        "length of features or gradients, or the more often the longer the gradient is "
        "(importance)",
    )
    gradient_weight: Literal["paper", "even", "unbiased"] = option(
        "even",
        "paper: kept gradients as they are; even: weighted so that their sum is r times the full "
        "gradient in the mean; unbiased: the full gradient in the mean",
    )
    execution: Literal["auto", "split", "replay"] = option(
        "auto",
        "split: kept snippets in one batch; replay: one piece after another, in less memory and "
        "more time; auto: split where it fits",
    )
    memory_budget_mb: int = option(
        4096,
        "of a rank: activations, weights, gradients, optimiser state, images; libraries come "
        "on top",
        unit="MB",
        least=1,
    )
    temporal: ModelName = option(
        "mtn", "network that is trained with the encoders", choices=_STEPPED
    )
    input_size: int = option(
        112,
        "side of the square that an encoder sees, here and in features",
        unit="pixels",
        least=32,
        most=4_096,
    )
    snippet_stride: int = option(
        1, "k: every k-th snippet is seen; a larger k is faster and blurs boundaries", least=1
    )
    frozen_stages: int = option(0, "first stages of each encoder that stay as they are", least=0)
    epochs: int = option(8, "passes over the training videos", least=1)
    temporal_epochs: int = option(
        10,
        "passes that the temporal network makes first, over the features of untuned encoders",
        least=0,
    )
    batch_size: int = option(4, "videos in a step", least=1)
    encoder_rate: float = option(0.00005, "Adam's step size for encoders", above=0)
    temporal_rate: float = option(0.0005, "Adam's step size for the temporal network", above=0)
    augment: bool = option(True, "crop and flip the images, alike in a video and epoch")
    keep: Keep = option(
        "last",
        "last epoch, average of the last ones, or best by the actionness of training videos that "
        "are held out (docs/finetune.md)",
    )
    choosing_fraction: float = option(
        0.2, "share of the training videos that are held out (keep best)", above=0, below=1
    )
    average_epochs: int = option(4, "how many epochs are in the average", least=1)
    score_every: int = option(
        1,
        "epochs between two scores of the validation videos, which decide nothing; 0: at the end",
        least=0,
    )
    precision: Literal["float32", "bfloat16"] = option("float32", "arithmetic of the encoders")
    seed: int = option(1, "seed of kept snippets, images, order of videos", least=0, most=2**32 - 1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sampler in BY_GRADIENT and (self.execution == "split" or self.way != "sbp"):
            raise ValueError(
                f"sampler {self.sampler}: needs way sbp and execution replay (or auto): the "
                "gradients are known only after the temporal network's"
            )
        replays = self.execution == "replay" or self.sampler in BY_GRADIENT
        if self.keep_ratio == "auto" and replays:
            raise ValueError(
                "keep_ratio auto: the memory of replay does not depend on it; give a number"
            )


def add_tuning_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of stores, annotations and all settings."""
    parser.add_argument(
        "--snippets", type=Path, nargs="+", required=True, help="stores of `finetune store`"
    )
    parser.add_argument("--annotations", type=Path, required=True, help="annotations.json")
    add_settings(parser, FinetuneSettings)
    others = [knob.name for knob in knobs_of(EncoderSettings) if knob.name not in ENCODERS]
    add_settings(parser, EncoderSettings, without=others)
    add_settings(parser, RescaleSettings)
    add_settings(parser, TemporalSettings, without=WITHOUT_TEMPORAL)


def tuning_settings(
    arguments: argparse.Namespace,
) -> tuple[FinetuneSettings, EncoderSettings, RescaleSettings, TemporalSettings]:
    """Return the settings that the flags give.

    Raises:
        InputError: A value is not allowed.
    """
    finetune = from_arguments(FinetuneSettings, arguments)
    # the same words have another meaning there
    encoders = from_arguments(EncoderSettings, arguments, batch_size=EncoderSettings.batch_size)
    epochs = {"keep": "last", "epochs": max(1, finetune.temporal_epochs)}
    temporal = from_arguments(TemporalSettings, arguments, **epochs)
    return finetune, encoders, from_arguments(RescaleSettings, arguments), temporal


@dataclass(frozen=True, kw_only=True)
class StoreSettings(Checked):
    """How images of each video's snippets are stored: about 3 MB for 100 of them.

    By default they are as large as the frames of the video stage. A network then sees the same
    images in training as in the features stage, and crops of 0.8 have enough pixels.
    """

    height: int = option(
        256,
        "height of stored frames and flow, a multiple of 8; at least 1.25 times the input size",
        unit="pixels",
        least=32,
        most=JPEG_LONGEST,
    )
    width: int = option(340, "their width", unit="pixels", least=32, most=JPEG_LONGEST)
    jpeg_quality: int = option(90, "JPEG quality of stored frames and flow", least=1, most=100)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.height % JPEG_BLOCK:
            # the planes of a snippet are one image: no block of it may hold two of them
            raise ValueError(f"height {self.height}: must be a multiple of {JPEG_BLOCK}")
