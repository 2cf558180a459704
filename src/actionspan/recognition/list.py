"""List the trimmed clips of a folder with their classes and subsets."""

import argparse
import sys
from pathlib import Path

from actionspan.recognition.clip_lists import ClipSettings, TrimmedClip, excluded_files, list_clips
from actionspan.settings import add_settings, at_least_one, from_arguments
from actionspan.storage.writing import write_tsv


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_folder(parser)
    parser.add_argument("--out", type=Path, required=True, help="table to write, clips.tsv")


def run(arguments: argparse.Namespace) -> None:
    """Write the list."""
    clips = listed(arguments)
    for file, reason in excluded_files(arguments.clips).items():
        print(f"left out {file}: {reason}", file=sys.stderr)
    write_tsv(arguments.out, TrimmedClip._fields, clips)


def add_folder(parser: argparse.ArgumentParser) -> None:
    """Add the flags that name the clips of a folder."""
    text = "folder with CLASS/clip.avi, or training/CLASS/… and validation/CLASS/…"
    parser.add_argument("--clips", type=Path, required=True, help=text)
    parser.add_argument("--splits", type=Path, help="folder of UCF101's or HMDB51's split files")
    parser.add_argument("--split", type=int, default=1, help="which of the splits (default: 1)")
    add_settings(parser, ClipSettings)


def listed(arguments: argparse.Namespace) -> list[TrimmedClip]:
    """Return the clips that these flags name."""
    settings = from_arguments(ClipSettings, arguments)
    split = at_least_one("--split", arguments.split)
    return list_clips(arguments.clips, arguments.splits, split, settings.validation_fraction)
