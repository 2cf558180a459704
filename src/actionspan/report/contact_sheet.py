"""A video's events in one picture: the middle frame of each."""

import argparse
from pathlib import Path

from actionspan.errors import InputError
from actionspan.proposals.settings import ChapterSettings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--video", type=Path, required=True, help="file, named by the id")
    parser.add_argument("--proposals", type=Path, required=True, help="ActivityNet result JSON")
    events = "events.json, whose events are shown (default: the chapters of the proposals)"
    parser.add_argument("--events", type=Path, nargs="?", help=events)
    parser.add_argument("--out", type=Path, required=True, help=".jpg or .png")


def run(arguments: argparse.Namespace) -> None:
    """Write the sheet.

    Raises:
        InputError: The video is not there, or the proposals are in another form.
    """
    from actionspan.proposals.reading import iterate_proposals
    from actionspan.proposals.webvtt import choose_chapters
    from actionspan.report.sheet import MOST, write_sheet

    if not arguments.video.is_file():
        raise InputError(f"{arguments.video}: no such file")
    source, video = arguments.events or arguments.proposals, arguments.video
    rows = next((rows for name, rows in iterate_proposals(source) if name == video.stem), [])
    if arguments.events is None:
        rows = [row for _, row in choose_chapters(rows, ChapterSettings(chapters=MOST))]
    write_sheet(arguments.out, video, rows)
