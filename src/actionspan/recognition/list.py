"""List the trimmed clips of a folder with their classes and subsets."""

import argparse
import sys
from pathlib import Path

from actionspan.recognition.clip_folder import add_folder, clips_of
from actionspan.recognition.clip_lists import files_left_out
from actionspan.recognition.clip_settings import ClipSettings
from actionspan.settings import add_settings, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_folder(parser)
    parser.add_argument("--out", type=Path, required=True, help="table to write, clips.tsv")
    add_settings(parser, ClipSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write the list."""
    clips = clips_of(arguments, from_arguments(ClipSettings, arguments))
    from actionspan.recognition.trimmed_clips import write_clip_list

    for file, reason in files_left_out(arguments.clips).items():
        print(f"left out {file}: {reason}", file=sys.stderr)
    write_clip_list(arguments.out, clips)
