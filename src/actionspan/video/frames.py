"""Decode each video once; keep centre frames and the grey frames that flow needs."""

import argparse
from pathlib import Path

from actionspan.running.faults import FaultSettings
from actionspan.settings import add_settings, at_least_one, from_arguments
from actionspan.video.settings import FrameSettings, LimitSettings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--shard", type=Path, required=True, help="table of probed videos")
    places = "where its videos are now, by their names (default: where the table says)"
    parser.add_argument("--videos", type=Path, nargs="*", default=[], metavar="FILE", help=places)
    parser.add_argument(
        "--processes", type=int, default=1, help="videos at once, one core each (default: 1)"
    )
    parser.add_argument(
        "--recipe",
        type=Path,
        help="features/recipe.json: a video whose features by it stand is not decoded; these are "
        "written in place of its frames (default: decode every video)",
    )
    parser.add_argument("--out", type=Path, required=True, help="HDF5 file to write")
    for settings in (FrameSettings, LimitSettings, FaultSettings):
        add_settings(parser, settings)


def run(arguments: argparse.Namespace) -> None:
    """Write the snippets of one shard."""
    settings = from_arguments(FrameSettings, arguments)
    limits = from_arguments(LimitSettings, arguments)
    faults = from_arguments(FaultSettings, arguments)
    processes = at_least_one("--processes", arguments.processes)
    from actionspan.dataset.tables import at_files, read_videos
    from actionspan.video.snippets import frames_of_shard

    frames_of_shard(
        at_files(read_videos(arguments.shard), arguments.videos),
        arguments.out,
        settings,
        processes,
        limits=limits,
        faults=faults,
        recipe=arguments.recipe,
    )
