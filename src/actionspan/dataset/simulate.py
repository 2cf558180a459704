"""Simulated features.h5 with segments of real annotations, for tests of speed."""

import argparse
from pathlib import Path

from actionspan.dataset.simulated import SimulateSettings, simulate
from actionspan.settings import add_settings, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument(
        "--annotations",
        type=Path,
        nargs="+",
        required=True,
        metavar="FILE",
        help="annotations of any form, from which durations and segments are drawn",
    )
    parser.add_argument(
        "--video-info",
        type=Path,
        metavar="FILE",
        help="a table of videos for subsets and durations that the annotations leave out, such as"
        " video_info_new.csv; without a subset a stable hash splits the videos",
    )
    parser.add_argument("--out-features", type=Path, required=True, help="features.h5")
    parser.add_argument("--out-annotations", type=Path, required=True, help="annotations.json")
    add_settings(parser, SimulateSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write simulated features and their annotations."""
    simulate(
        arguments.annotations,
        arguments.video_info,
        arguments.out_features,
        arguments.out_annotations,
        from_arguments(SimulateSettings, arguments),
    )
