"""The features of all shards, rescaled and standardised, as features.h5."""

import argparse
from pathlib import Path
from typing import Any

from actionspan.features.settings import RescaleSettings
from actionspan.settings import add_settings, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_collect_flags(parser, "features/features.h5", RescaleSettings)


def run(arguments: argparse.Namespace) -> None:
    """Make features.h5."""
    run_collect(arguments, from_arguments(RescaleSettings, arguments))


def add_collect_flags(parser: argparse.ArgumentParser, out: str, *settings: type) -> None:
    """Add the flags of a step that collects the features of all shards."""
    parser.add_argument("--shards", type=Path, nargs="+", required=True, help="feature shards")
    parser.add_argument("--videos", type=Path, required=True, help="dataset/videos.tsv")
    parser.add_argument("--annotations", type=Path, required=True, help="dataset/annotations.json")
    parser.add_argument("--out", type=Path, required=True, help=out)
    text = "leave out videos without features, or stop (default: skip)"
    parser.add_argument("--on-bad-input", choices=["skip", "fail"], default="skip", help=text)
    for each in settings:
        add_settings(parser, each)


def run_collect(arguments: argparse.Namespace, settings: RescaleSettings, **how: Any) -> None:
    """Collect the features; `how` are the other arguments of `collect`."""
    from actionspan.features.collect import collect

    files = (arguments.shards, arguments.videos, arguments.annotations, arguments.out)
    collect(*files, settings, all_needed=arguments.on_bad_input == "fail", **how)
