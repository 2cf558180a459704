"""Features of each snippet of a shard from its videos in one pass, with nothing written between."""

import argparse
from pathlib import Path

from actionspan.features.settings import EncoderSettings
from actionspan.settings import add_settings, at_least_one, from_arguments
from actionspan.video.settings import FlowSettings, FrameSettings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--shard", type=Path, required=True, help="table of probed videos")
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
    add_settings(parser, EncoderSettings)


def run(arguments: argparse.Namespace) -> None:
    """Compute the features of one shard."""
    frames = from_arguments(FrameSettings, arguments)
    flow = from_arguments(FlowSettings, arguments, device=arguments.flow_device)
    encoders = from_arguments(EncoderSettings, arguments)
    processes = at_least_one("--processes", arguments.processes)
    threads = at_least_one("--threads", arguments.threads)
    from actionspan.dataset.tables import read_videos
    from actionspan.features.one_pass import VideoSettings, encode_shard
    from actionspan.running.allocator import keep_freed_memory

    keep_freed_memory()
    settings = VideoSettings(frames=frames, flow=flow, encoders=encoders)
    encode_shard(read_videos(arguments.shard), arguments.out, settings, processes, threads)
