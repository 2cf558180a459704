"""Features people already have, as a feature shard."""

import argparse

from actionspan.features.settings import ExternalSettings
from actionspan.running.shards import add_shard_flags, shard_work
from actionspan.settings import from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    inputs = {
        "folder": "a .npy, .csv, .pkl or .h5 for each video",
        "videos": "dataset/videos.tsv",
    }
    add_shard_flags(parser, ExternalSettings, inputs=inputs, out="features/shards/external.h5")


def run(arguments: argparse.Namespace) -> None:
    """Read a folder of features."""
    settings, how = from_arguments(ExternalSettings, arguments), shard_work(arguments)
    from actionspan.features.importing import import_features

    import_features(arguments.folder, arguments.videos, arguments.out, settings, how)
