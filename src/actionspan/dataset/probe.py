"""Read fps, frames, duration, size and SHA-256 of the videos of one shard."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from actionspan.dataset.formats.rejections import OnBadInput, Rejection, report
from actionspan.dataset.tables import SHARD_COLUMNS, write_videos
from actionspan.running.progress import progress
from actionspan.settings import add_settings, from_arguments, option


@dataclass(frozen=True, kw_only=True)
class ProbeSettings:
    """What happens to videos that cannot be read."""

    on_bad_input: OnBadInput = option("skip", "note the reason in the shard and go on, or stop")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--videos", type=Path, nargs="+", required=True, help="video files")
    parser.add_argument("--out", type=Path, required=True, help="the shard's table")
    add_settings(parser, ProbeSettings)


def run(arguments: argparse.Namespace) -> None:
    """Probe the videos of one shard."""
    from actionspan.dataset.video_facts import probe_video

    settings = from_arguments(ProbeSettings, arguments)
    paths = progress(arguments.videos, "probing", len(arguments.videos))
    probed = sorted((probe_video(path) for path in paths), key=lambda video: video.video_id)
    write_videos(arguments.out, probed, SHARD_COLUMNS)
    bad = [Rejection(str(video.path), "", video.error) for video in probed if video.error]
    report(bad, settings.on_bad_input, arguments.out)
