"""The best proposals of each video as WebVTT chapters for players."""

import argparse
from pathlib import Path

from actionspan.errors import InputError
from actionspan.proposals.settings import ChapterSettings
from actionspan.settings import add_settings, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--proposals", type=Path, required=True, help="proposals.json")
    parser.add_argument(
        "--videos",
        nargs="+",
        action="extend",
        metavar="ID",
        help="video ids (default: all); a video without proposals gets no chapter",
    )
    parser.add_argument("--out-folder", type=Path, required=True, help="folder for ID.vtt files")
    add_settings(parser, ChapterSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write a WebVTT file for each video."""
    from actionspan.proposals.reading import iterate_proposals
    from actionspan.proposals.webvtt import write_chapters

    settings = from_arguments(ChapterSettings, arguments)
    chosen = dict.fromkeys(arguments.videos or ())
    for video_id, rows in iterate_proposals(arguments.proposals):
        if arguments.videos is None or video_id in chosen:
            write_chapters(_path(arguments, video_id), rows, settings)
            chosen.pop(video_id, None)
    for video_id in chosen:
        write_chapters(_path(arguments, video_id), [], settings)


def _path(arguments: argparse.Namespace, video_id: str) -> Path:
    """Return the file of a video's chapters.

    Raises:
        InputError: The id is not a file name.
    """
    if not video_id or Path(video_id).name != video_id:
        raise InputError(f"{arguments.proposals}: video {video_id!r} is not a file name")
    folder: Path = arguments.out_folder
    return folder / f"{video_id}.vtt"
