"""Features of each snippet of a shard from its videos in one pass, with nothing written between."""

import argparse

from actionspan.dataset.settings import LimitSettings
from actionspan.features.settings import add_video_settings, video_settings
from actionspan.jobs.shards import add_shard_flags, add_video_flags, shard_work
from actionspan.settings import from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_video_flags(parser, "valid features by it are taken over (default: encode every video)")
    add_video_settings(parser)
    add_shard_flags(
        parser,
        LimitSettings,
        processes="videos at once, each with networks",
        threads="cores of each",
        out="features/shards/{shard}.h5",
    )


def run(arguments: argparse.Namespace) -> None:
    """Compute the features of one shard."""
    settings, how = video_settings(arguments), shard_work(arguments)
    limits = from_arguments(LimitSettings, arguments)
    from actionspan.annotations.tables import at_files, read_videos
    from actionspan.features.one_pass import encode_shard
    from actionspan.video.zones import read_zones

    videos = at_files(read_videos(arguments.shard), arguments.videos)
    more = arguments.recipe, read_zones(arguments.zones)
    encode_shard(videos, arguments.out, settings, how, limits, *more)
