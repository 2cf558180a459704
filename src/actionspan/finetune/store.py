"""Store the snippets of a shard as JPEG pictures, to read them in many epochs."""

import argparse
from pathlib import Path

from actionspan.finetune.store_settings import StoreSettings
from actionspan.running.faults import FaultSettings
from actionspan.settings import add_settings, at_least_one, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--frames", type=Path, required=True, help="video/frames/{shard}.h5")
    parser.add_argument("--flow", type=Path, required=True, help="video/flow/{shard}.h5")
    parser.add_argument(
        "--processes", type=int, default=1, help="videos at once, one core each (default: 1)"
    )
    parser.add_argument("--out", type=Path, required=True, help="finetune/snippets/{shard}.h5")
    add_settings(parser, StoreSettings)
    add_settings(parser, FaultSettings)


def run(arguments: argparse.Namespace) -> None:
    """Store the snippets of one shard."""
    settings = from_arguments(StoreSettings, arguments)
    faults = from_arguments(FaultSettings, arguments)
    processes = at_least_one("--processes", arguments.processes)
    from actionspan.finetune.storing import store_snippets

    files = (arguments.frames, arguments.flow, arguments.out)
    store_snippets(*files, settings, processes, faults)
