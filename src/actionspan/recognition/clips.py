"""Decode trimmed clips once, compute their flow and store both."""

import argparse

from actionspan.dataset.settings import LimitSettings
from actionspan.errors import InputError
from actionspan.jobs.shards import add_shard_flags, shard_work
from actionspan.recognition.clip_lists import ClipSettings
from actionspan.recognition.list import add_folder, listed
from actionspan.settings import from_arguments
from actionspan.video.settings import FlowSettings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_folder(parser)
    parser.add_argument(
        "--shard-clips",
        nargs="+",
        action="extend",
        metavar="ID",
        help="ids of the clips of this shard, as `recognition list` shows them (default: all)",
    )
    add_shard_flags(parser, FlowSettings, LimitSettings, processes="clips at once, one core each")


def run(arguments: argparse.Namespace) -> None:
    """Store the clips of one shard."""
    settings = from_arguments(ClipSettings, arguments)
    flow = from_arguments(FlowSettings, arguments)
    limits, how = from_arguments(LimitSettings, arguments), shard_work(arguments)
    from actionspan.recognition.trimmed_clips import store_clips

    clips = {clip.clip_id: clip for clip in listed(arguments)}
    chosen = list(clips) if arguments.shard_clips is None else arguments.shard_clips
    for clip_id in chosen:
        if clip_id not in clips:
            raise InputError(f"--shard-clips {clip_id}: no such clip in {arguments.clips}")
    shard = [clips[clip_id] for clip_id in dict.fromkeys(chosen)]
    name = "the clips of " + "/".join(arguments.clips.resolve().parts[-2:])
    store_clips(shard, arguments.out, settings, flow, how, name, limits=limits)
