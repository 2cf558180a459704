"""Store the snippets of a shard as JPEG pictures, to read them in many epochs."""

import argparse
from dataclasses import dataclass

from actionspan.running.shards import VIDEOS, add_shard_flags, shard_work
from actionspan.settings import Checked, from_arguments, option
from actionspan.video.settings import JPEG_BLOCK, JPEG_LONGEST


@dataclass(frozen=True, kw_only=True)
class StoreSettings(Checked):
    """How pictures of each video's snippets are stored: about 3 MB for 100 of them.

    By default they are as large as the frames of the video stage, so that a network sees in
    training what it sees where features are made, and crops of 0.8 have pixels enough.
    """

    height: int = option(
        256,
        "height of stored frames and flow, a multiple of 8; at least 1.25 times the input size",
        unit="pixels",
        least=32,
        most=JPEG_LONGEST,
    )
    width: int = option(340, "their width", unit="pixels", least=32, most=JPEG_LONGEST)
    jpeg_quality: int = option(90, "JPEG quality of stored frames and flow", least=1, most=100)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.height % JPEG_BLOCK:
            # the planes of a snippet are one picture: no block of it may hold two of them
            raise ValueError(f"height {self.height}: must be a multiple of {JPEG_BLOCK}")


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
