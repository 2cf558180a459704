"""Read fps, frames, duration, size and SHA-256 of the videos of one shard."""

import argparse
from functools import partial
from pathlib import Path

from actionspan.annotations.formats.rejections import Rejection, report
from actionspan.annotations.tables import SHARD_COLUMNS, write_videos
from actionspan.dataset.settings import LimitSettings
from actionspan.jobs.apart import work_apart
from actionspan.jobs.progress import progress
from actionspan.jobs.shards import add_shard_flags, shard_work
from actionspan.settings import from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--videos", type=Path, nargs="+", required=True, help="video files")
    add_shard_flags(parser, LimitSettings, out="the shard's table")


def run(arguments: argparse.Namespace) -> None:
    """Probe the videos of one shard."""
    limits, faults = from_arguments(LimitSettings, arguments), shard_work(arguments).faults
    from actionspan.dataset.video_facts import bad_video, probe_video

    paths: list[Path] = arguments.videos
    done = work_apart(
        partial(probe_video, limits=limits), paths, stall_seconds=faults.stall_seconds
    )
    probed = sorted(
        (
            outcome.value or bad_video(paths[index], outcome.reason)
            for index, outcome in progress(done, "probing", len(paths))
        ),
        key=lambda video: video.video_id,
    )
    write_videos(arguments.out, probed, SHARD_COLUMNS)
    bad = [Rejection(str(video.path), "", video.error) for video in probed if video.error]
    report(bad, faults.on_bad_input, arguments.out)
