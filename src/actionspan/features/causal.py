"""The features of all shards at every snippet, with what is new against the past, as causal.h5."""

import argparse
from pathlib import Path

from actionspan.features.settings import CausalSettings, SequenceSettings
from actionspan.settings import add_settings, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--shards", type=Path, nargs="+", required=True, help="feature shards")
    parser.add_argument("--videos", type=Path, required=True, help="dataset/videos.tsv")
    parser.add_argument("--annotations", type=Path, required=True, help="dataset/annotations.json")
    parser.add_argument("--out", type=Path, required=True, help="features/causal.h5")
    parser.add_argument(
        "--on-bad-input",
        choices=["skip", "fail"],
        default="skip",
        help="leave out videos without features, or stop (default: skip)",
    )
    add_settings(parser, SequenceSettings)
    add_settings(parser, CausalSettings)


def run(arguments: argparse.Namespace) -> None:
    """Make causal.h5."""
    settings = from_arguments(SequenceSettings, arguments)
    from actionspan.features.collect import collect

    collect(
        arguments.shards,
        arguments.videos,
        arguments.annotations,
        arguments.out,
        settings.rescaling(),
        with_cues=True,
        causal=from_arguments(CausalSettings, arguments),
        same_footage=settings.same_footage,
        all_needed=arguments.on_bad_input == "fail",
    )
