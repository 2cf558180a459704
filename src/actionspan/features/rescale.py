"""The features of all shards, rescaled and standardised, as features.h5."""

import argparse
from pathlib import Path

from actionspan.features.settings import RescaleSettings
from actionspan.settings import add_settings, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--shards", type=Path, nargs="+", required=True, help="feature shards")
    parser.add_argument("--videos", type=Path, required=True, help="dataset/videos.tsv")
    parser.add_argument("--annotations", type=Path, required=True, help="dataset/annotations.json")
    parser.add_argument("--out", type=Path, required=True, help="features/features.h5")
    parser.add_argument(
        "--on-bad-input",
        choices=["skip", "fail"],
        default="skip",
        help="leave out videos without features, or stop (default: skip)",
    )
    add_settings(parser, RescaleSettings)


def run(arguments: argparse.Namespace) -> None:
    """Make features.h5."""
    settings = from_arguments(RescaleSettings, arguments)
    from actionspan.features.collect import collect

    collect(
        arguments.shards,
        arguments.videos,
        arguments.annotations,
        arguments.out,
        settings,
        all_needed=arguments.on_bad_input == "fail",
    )
