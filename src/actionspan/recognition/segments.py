"""Store instances and background of a shard's training videos as clips."""

import argparse

from actionspan.jobs.shards import add_shard_flags, shard_work
from actionspan.recognition.clip_lists import ClipSettings
from actionspan.settings import from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    inputs = {
        "frames": "video/frames/{shard}.h5",
        "flow": "video/flow/{shard}.h5",
        "annotations": "dataset/annotations.json",
    }
    add_shard_flags(parser, ClipSettings, inputs=inputs, processes="clips at once, one core each")


def run(arguments: argparse.Namespace) -> None:
    """Store the clips of one shard."""
    settings, how = from_arguments(ClipSettings, arguments), shard_work(arguments)
    from actionspan.recognition.segment_clips import segments_of_shard

    files = (arguments.frames, arguments.flow, arguments.annotations, arguments.out)
    segments_of_shard(*files, settings, how)
