"""Simulated features.h5 with segments of real annotations, for tests of speed."""

import argparse
from pathlib import Path

from actionspan.dataset.index import add_annotations
from actionspan.dataset.simulated import SimulateSettings, simulate
from actionspan.settings import add_settings, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_annotations(parser, "annotations of any form, the source of durations and segments")
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
