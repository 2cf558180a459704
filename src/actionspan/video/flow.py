"""Optical flow between the grey frames, coded in 8 bits."""

import argparse

from actionspan.jobs.shards import VIDEOS, add_shard_flags, shard_work
from actionspan.settings import from_arguments
from actionspan.video.settings import FlowSettings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    inputs = {"frames": "HDF5 file of `video frames`"}
    add_shard_flags(parser, FlowSettings, inputs=inputs, processes=VIDEOS)


def run(arguments: argparse.Namespace) -> None:
    """Write the flow of one shard."""
    settings, how = from_arguments(FlowSettings, arguments), shard_work(arguments)
    from actionspan.video.optical_flow import flow_of_shard

    flow_of_shard(arguments.frames, arguments.out, settings, how)
