"""`actionspan video`: frames and flow of a shard of videos."""

import argparse
from pathlib import Path

from actionspan.errors import InputError
from actionspan.settings import add_arguments, from_arguments
from actionspan.video.settings import FlowSettings, FrameSettings


def add_parsers(parser: argparse.ArgumentParser) -> None:
    """Add `video frames` and `video flow`."""
    steps = parser.add_subparsers(dest="step", required=True, metavar="STEP")
    help_line = "decode each video once; keep centre frames and the grey frames flow needs"
    frames = steps.add_parser("frames", help=help_line, description=help_line)
    frames.add_argument("--shard", type=Path, required=True, help="table of probed videos")
    add_arguments(frames, FrameSettings)
    frames.set_defaults(run=_run_frames)
    help_line = "optical flow between the grey frames, coded in 8 bits"
    flow = steps.add_parser("flow", help=help_line, description=help_line)
    flow.add_argument("--frames", type=Path, required=True, help="HDF5 file of `video frames`")
    add_arguments(flow, FlowSettings)
    flow.set_defaults(run=_run_flow)
    for step in (frames, flow):
        step.add_argument(
            "--processes", type=int, default=1, help="videos at once, one core each (default: 1)"
        )
        step.add_argument("--out", type=Path, required=True, help="HDF5 file to write")


def _run_frames(arguments: argparse.Namespace) -> int:
    settings = from_arguments(FrameSettings, arguments)
    processes = _processes(arguments)
    from actionspan.dataset.tables import read_videos
    from actionspan.video.snippets import frames_of_shard

    frames_of_shard(read_videos(arguments.shard), arguments.out, settings, processes)
    return 0


def _run_flow(arguments: argparse.Namespace) -> int:
    settings = from_arguments(FlowSettings, arguments)
    processes = _processes(arguments)
    if settings.algorithm == "raft":
        import torch

        torch.set_num_threads(1)
    from actionspan.video.optical_flow import flow_of_shard

    flow_of_shard(arguments.frames, arguments.out, settings, processes)
    return 0


def _processes(arguments: argparse.Namespace) -> int:
    if arguments.processes < 1:
        raise InputError(f"--processes: {arguments.processes}; it must be 1 or more")
    return int(arguments.processes)
