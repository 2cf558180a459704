"""Features of each snippet of a shard from its videos in one pass, with nothing written between."""

import argparse
from pathlib import Path

from actionspan.features.video_settings import add_video_settings, video_settings
from actionspan.running.faults import FaultSettings
from actionspan.settings import add_settings, at_least_one, from_arguments
from actionspan.video.settings import LimitSettings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--shard", type=Path, required=True, help="table of probed videos")
    places = "where its videos are now, by their names (default: where the table says)"
    parser.add_argument("--videos", type=Path, nargs="*", default=[], metavar="FILE", help=places)
    parser.add_argument(
        "--processes", type=int, default=1, help="videos at once, each with networks (default: 1)"
    )
    parser.add_argument("--threads", type=int, default=1, help="cores of each (default: 1)")
    parser.add_argument(
        "--recipe",
        type=Path,
        help="features/recipe.json: features that stand by it are taken over (default: encode "
        "every video)",
    )
    parser.add_argument("--out", type=Path, required=True, help="features/shards/{shard}.h5")
    add_video_settings(parser)
    for settings in (LimitSettings, FaultSettings):
        add_settings(parser, settings)


def run(arguments: argparse.Namespace) -> None:
    """Compute the features of one shard."""
    settings = video_settings(arguments)
    limits = from_arguments(LimitSettings, arguments)
    faults = from_arguments(FaultSettings, arguments)
    processes = at_least_one("--processes", arguments.processes)
    threads = at_least_one("--threads", arguments.threads)
    from actionspan.dataset.tables import at_files, read_videos
    from actionspan.features.one_pass import encode_shard

    encode_shard(
        at_files(read_videos(arguments.shard), arguments.videos),
        arguments.out,
        settings,
        processes,
        threads,
        limits=limits,
        faults=faults,
        recipe=arguments.recipe,
    )
