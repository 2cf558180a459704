"""Store the snippets of a shard as JPEG pictures, to read them in many epochs."""

import argparse

from actionspan.finetune.settings import StoreSettings
from actionspan.jobs.shards import VIDEOS, add_shard_flags, shard_work
from actionspan.settings import from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    inputs = {"frames": "video/frames/{shard}.h5", "flow": "video/flow/{shard}.h5"}
    out = "finetune/snippets/{shard}.h5"
    add_shard_flags(parser, StoreSettings, inputs=inputs, processes=VIDEOS, out=out)


def run(arguments: argparse.Namespace) -> None:
    """Store the snippets of one shard."""
    settings, how = from_arguments(StoreSettings, arguments), shard_work(arguments)
    from actionspan.finetune.storing import store_snippets

    store_snippets(arguments.frames, arguments.flow, arguments.out, settings, how)
