"""Features of each snippet of a shard, from its frames and flow."""

import argparse
from pathlib import Path

from actionspan.features.settings import EncoderSettings
from actionspan.settings import add_settings, at_least_one, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--frames", type=Path, required=True, help="video/frames/{shard}.h5")
    parser.add_argument("--flow", type=Path, required=True, help="video/flow/{shard}.h5")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads (default: 1)")
    parser.add_argument("--out", type=Path, required=True, help="features/shards/{shard}.h5")
    add_settings(parser, EncoderSettings)


def run(arguments: argparse.Namespace) -> None:
    """Compute the features of one shard."""
    settings = from_arguments(EncoderSettings, arguments)
    threads = at_least_one("--threads", arguments.threads)
    import cv2
    import torch

    from actionspan.features.extraction import extract
    from actionspan.running.allocator import keep_freed_memory

    keep_freed_memory()
    torch.set_num_threads(threads)
    cv2.setNumThreads(threads)
    extract(arguments.frames, arguments.flow, arguments.out, settings)
