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
    from actionspan.proposals.reading import read_proposals
    from actionspan.proposals.webvtt import write_chapters

    settings = from_arguments(ChapterSettings, arguments)
    results = read_proposals(arguments.proposals)
    for video_id in list(results) if arguments.videos is None else arguments.videos:
        if not video_id or Path(video_id).name != video_id:
            raise InputError(f"{arguments.proposals}: video {video_id!r} is not a file name")
        path = arguments.out_folder / f"{video_id}.vtt"
        write_chapters(path, results.get(video_id, []), settings)
