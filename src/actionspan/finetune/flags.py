"""The flags that the steps share which plan or run a tuning."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from actionspan.features.settings import EncoderSettings, RescaleSettings
from actionspan.finetune.settings import FinetuneSettings
from actionspan.settings import add_settings, from_arguments, knobs_of
from actionspan.temporal.settings import TemporalSettings

# of the features stage, those that say which networks are tuned
ENCODERS = (
    "rgb_encoder",
    "rgb_weights",
    "flow_encoder",
    "flow_weights",
    "flow_gain",
    "device",
)
# of the temporal network, those that FinetuneSettings have in their own way, and those of other
# networks, of features or of a schedule
WITHOUT_TEMPORAL = (
    *("epochs", "batch_size", "keep", "average_epochs", "seed"),
    *("members", "look_ahead", "feature_noise", "window_coverage"),
    *("decay_epochs", "decay_factor"),
)


@dataclass(frozen=True)
class TuningSettings:
    """All settings of a tuning."""

    finetune: FinetuneSettings
    encoders: EncoderSettings
    rescaling: RescaleSettings
    temporal: TemporalSettings


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


def tuning_settings(arguments: argparse.Namespace) -> TuningSettings:
    """Return the settings that the flags give.

    Raises:
        InputError: A value is not allowed.
    """
    finetune = from_arguments(FinetuneSettings, arguments)
    # what the same words mean elsewhere
    own = {"batch_size": EncoderSettings.batch_size}
    epochs = {"keep": "last", "epochs": max(1, finetune.temporal_epochs)}
    return TuningSettings(
        finetune,
        from_arguments(EncoderSettings, arguments, **own),
        from_arguments(RescaleSettings, arguments),
        from_arguments(TemporalSettings, arguments, **epochs),
    )
