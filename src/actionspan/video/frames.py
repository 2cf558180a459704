"""Decode each video once; keep centre frames and the grey frames that flow needs."""

import argparse

from actionspan.dataset.settings import LimitSettings
from actionspan.jobs.shards import VIDEOS, add_shard_flags, add_video_flags, shard_work
from actionspan.settings import from_arguments
from actionspan.video.settings import DecoderSettings, FrameSettings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_video_flags(
        parser,
        "a video with valid features by it is not decoded; these are written instead of its "
        "frames (default: decode every video)",
    )
    add_shard_flags(parser, FrameSettings, LimitSettings, DecoderSettings, processes=VIDEOS)


def run(arguments: argparse.Namespace) -> None:
    """Write the snippets of one shard."""
    settings = from_arguments(FrameSettings, arguments)
    limits, how = from_arguments(LimitSettings, arguments), shard_work(arguments)
    from actionspan.annotations.tables import at_files, read_videos
    from actionspan.video.snippets import frames_of_shard
    from actionspan.video.zones import read_zones

    videos = at_files(read_videos(arguments.shard), arguments.videos)
    more = arguments.recipe, arguments.decoder, read_zones(arguments.zones)
    frames_of_shard(videos, arguments.out, settings, how, limits, *more)
