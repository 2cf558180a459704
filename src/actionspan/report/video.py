"""A small copy of a video that browsers play."""

import argparse
import sys
from pathlib import Path

from actionspan.settings import add_settings, from_arguments
from actionspan.video.settings import CopySettings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--video", type=Path, required=True, help="the video file")
    parser.add_argument("--out", type=Path, required=True, help="H.264 in .mp4")
    add_settings(parser, CopySettings)


def run(arguments: argparse.Namespace) -> None:
    """Write the copy; where the video is damaged, say where it ends."""
    from actionspan.video.playable import write_playable

    settings = from_arguments(CopySettings, arguments)
    if ended := write_playable(arguments.video, arguments.out, settings):
        print(f"{ended}; the copy ends there", file=sys.stderr)
