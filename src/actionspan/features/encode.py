"""Features of each snippet of a shard from its videos in one pass, with nothing written between."""

import argparse
from pathlib import Path

from actionspan.features.settings import EncoderSettings
from actionspan.running.faults import FaultSettings
from actionspan.settings import add_settings, at_least_one, from_arguments
from actionspan.video.settings import FlowSettings, FrameSettings, LimitSettings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--shard", type=Path, required=True, help="table of probed videos")
    places = "where its videos are now, by their names (default: where the table says)"
    parser.add_argument("--videos", type=Path, nargs="*", default=[], metavar="FILE", help=places)
    parser.add_argument(
        "--processes", type=int, default=1, help="videos at once, each with networks (default: 1)"
    )
    parser.add_argument("--threads", type=int, default=1, help="cores of each (default: 1)")
    parser.add_argument("--out", type=Path, required=True, help="features/shards/{shard}.h5")
    add_settings(parser, FrameSettings)
    add_settings(parser, FlowSettings, without=("device",))
    parser.add_argument(
        "--flow-device",
        choices=["auto", "cpu", "cuda"],
        default="auto",
        help="where RAFT computes the flow (default: auto)",
    )
    for settings in (EncoderSettings, LimitSettings, FaultSettings):
        add_settings(parser, settings)


def run(arguments: argparse.Namespace) -> None:
    """Compute the features of one shard."""
    frames = from_arguments(FrameSettings, arguments)
    flow = from_arguments(FlowSettings, arguments, device=arguments.flow_device)
    encoders = from_arguments(EncoderSettings, arguments)
    limits = from_arguments(LimitSettings, arguments)
    faults = from_arguments(FaultSettings, arguments)
    processes = at_least_one("--processes", arguments.processes)
    threads = at_least_one("--threads", arguments.threads)
    from actionspan.dataset.tables import at_files, read_videos
    from actionspan.features.one_pass import VideoSettings, encode_shard

    settings = VideoSettings(frames=frames, flow=flow, encoders=encoders)
    videos = at_files(read_videos(arguments.shard), arguments.videos)
    encode_shard(videos, arguments.out, settings, processes, threads, limits=limits, faults=faults)
