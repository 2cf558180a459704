"""The flags of the steps `list` and `clips` that name a folder of trimmed clips."""

import argparse
from pathlib import Path

from actionspan.recognition.clip_lists import TrimmedClip, list_clips
from actionspan.recognition.clip_settings import ClipSettings
from actionspan.settings import at_least_one


def add_folder(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument(
        "--clips",
        type=Path,
        required=True,
        help="folder with CLASS/clip.avi, or training/CLASS/… and validation/CLASS/…",
    )
    parser.add_argument("--splits", type=Path, help="folder of UCF101's or HMDB51's split files")
    parser.add_argument("--split", type=int, default=1, help="which of the splits (default: 1)")


def clips_of(arguments: argparse.Namespace, settings: ClipSettings) -> list[TrimmedClip]:
    """Return the clips of the folder."""
    split = at_least_one("--split", arguments.split)
    return list_clips(arguments.clips, arguments.splits, split, settings.validation_fraction)
