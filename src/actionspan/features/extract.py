"""Features of each snippet of a shard, from its frames and flow or from stored pictures."""

import argparse
from pathlib import Path

from actionspan.features.settings import EncoderSettings
from actionspan.running.faults import FaultSettings
from actionspan.settings import add_settings, at_least_one, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--frames", type=Path, help="video/frames/{shard}.h5")
    parser.add_argument("--flow", type=Path, help="video/flow/{shard}.h5")
    parser.add_argument(
        "--snippets", type=Path, help="finetune/snippets/{shard}.h5, in place of the two"
    )
    parser.add_argument("--threads", type=int, default=1, help="CPU threads (default: 1)")
    parser.add_argument("--out", type=Path, required=True, help="features/shards/{shard}.h5")
    add_settings(parser, EncoderSettings)
    add_settings(parser, FaultSettings)


def run(arguments: argparse.Namespace) -> None:
    """Compute the features of one shard."""
    settings = from_arguments(EncoderSettings, arguments)
    faults = from_arguments(FaultSettings, arguments)
    decoded = (arguments.frames, arguments.flow)
    threads = at_least_one("--threads", arguments.threads)
    from actionspan.errors import InputError
    from actionspan.features.extraction import extract, extract_stored

    if arguments.snippets and decoded == (None, None):
        extract_stored(arguments.snippets, arguments.out, settings, threads, faults)
    elif arguments.snippets or None in decoded:
        raise InputError("give --frames and --flow, or --snippets alone")
    else:
        extract(*decoded, arguments.out, settings, threads, faults)
