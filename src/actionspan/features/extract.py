"""Features of each snippet of a shard, from its frames and flow or from stored images."""

import argparse
from pathlib import Path

from actionspan.errors import InputError
from actionspan.features.settings import EncoderSettings
from actionspan.jobs.shards import add_shard_flags, shard_work
from actionspan.settings import from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--frames", type=Path, help="video/frames/{shard}.h5")
    parser.add_argument("--flow", type=Path, help="video/flow/{shard}.h5")
    instead = "finetune/snippets/{shard}.h5, which replaces the two"
    parser.add_argument("--snippets", type=Path, help=instead)
    out = "features/shards/{shard}.h5"
    add_shard_flags(parser, EncoderSettings, threads="CPU threads", out=out)


def run(arguments: argparse.Namespace) -> None:
    """Compute the features of one shard."""
    settings, how = from_arguments(EncoderSettings, arguments), shard_work(arguments)
    decoded = (arguments.frames, arguments.flow)
    if decoded.count(None) != (2 if arguments.snippets else 0):
        raise InputError("give --frames and --flow, or --snippets alone")
    from actionspan.features.extraction import extract, extract_stored

    if arguments.snippets:
        extract_stored(arguments.snippets, arguments.out, settings, how)
    else:
        extract(*decoded, arguments.out, settings, how)
