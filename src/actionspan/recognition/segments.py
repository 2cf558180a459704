"""Store instances and background of a shard's training videos as clips."""

import argparse
from pathlib import Path

from actionspan.recognition.clip_settings import ClipSettings
from actionspan.running.faults import FaultSettings
from actionspan.settings import add_settings, at_least_one, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--frames", type=Path, required=True, help="video/frames/{shard}.h5")
    parser.add_argument("--flow", type=Path, required=True, help="video/flow/{shard}.h5")
    parser.add_argument("--annotations", type=Path, required=True, help="dataset/annotations.json")
    parser.add_argument(
        "--processes", type=int, default=1, help="clips at once, one core each (default: 1)"
    )
    parser.add_argument("--out", type=Path, required=True, help="HDF5 file to write")
    add_settings(parser, ClipSettings)
    add_settings(parser, FaultSettings)


def run(arguments: argparse.Namespace) -> None:
    """Store the clips of one shard."""
    settings = from_arguments(ClipSettings, arguments)
    faults = from_arguments(FaultSettings, arguments)
    processes = at_least_one("--processes", arguments.processes)
    from actionspan.recognition.segment_clips import segments_of_shard

    files = (arguments.frames, arguments.flow, arguments.annotations, arguments.out)
    segments_of_shard(*files, settings, processes, faults)
