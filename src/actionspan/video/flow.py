"""Optical flow between the grey frames, coded in 8 bits."""

import argparse
from pathlib import Path

from actionspan.running.faults import FaultSettings
from actionspan.settings import add_settings, at_least_one, from_arguments
from actionspan.video.settings import FlowSettings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--frames", type=Path, required=True, help="HDF5 file of `video frames`")
    parser.add_argument(
        "--processes", type=int, default=1, help="videos at once, one core each (default: 1)"
    )
    parser.add_argument("--out", type=Path, required=True, help="HDF5 file to write")
    add_settings(parser, FlowSettings)
    add_settings(parser, FaultSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write the flow of one shard."""
    settings = from_arguments(FlowSettings, arguments)
    faults = from_arguments(FaultSettings, arguments)
    processes = at_least_one("--processes", arguments.processes)
    from actionspan.video.optical_flow import flow_of_shard

    flow_of_shard(arguments.frames, arguments.out, settings, processes, faults)
