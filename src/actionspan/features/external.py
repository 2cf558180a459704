"""Features people already have, as a feature shard."""

import argparse
from pathlib import Path

from actionspan.features.settings import ExternalSettings
from actionspan.running.faults import FaultSettings
from actionspan.settings import add_settings, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    forms = "a .npy, .csv, .pkl or .h5 for each video"
    parser.add_argument("--folder", type=Path, required=True, help=forms)
    parser.add_argument("--videos", type=Path, required=True, help="dataset/videos.tsv")
    parser.add_argument("--out", type=Path, required=True, help="features/shards/external.h5")
    add_settings(parser, ExternalSettings)
    add_settings(parser, FaultSettings)


def run(arguments: argparse.Namespace) -> None:
    """Read a folder of features."""
    settings = from_arguments(ExternalSettings, arguments)
    from actionspan.features.importing import import_features

    faults = from_arguments(FaultSettings, arguments)
    import_features(arguments.folder, arguments.videos, arguments.out, settings, faults)
