"""A small copy of a video that browsers play."""

import argparse
import sys
from pathlib import Path

from actionspan.errors import InputError
from actionspan.settings import add_settings, from_arguments
from actionspan.video.settings import CopySettings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--video", type=Path, required=True, help="the video file")
    parser.add_argument("--out", type=Path, required=True, help="H.264 in .mp4")
    add_settings(parser, CopySettings)


def run(arguments: argparse.Namespace) -> None:
    """Write the copy; where the video is damaged, print where it ends."""
    from actionspan.video.playable import write_playable

    settings = from_arguments(CopySettings, arguments)
    if ended := write_playable(arguments.video, arguments.out, settings):
        print(f"{ended}; the copy ends there", file=sys.stderr)


def playable_file(
    path: Path | None, copy: Path, command: str, why: str | None = None
) -> tuple[Path | None, str]:
    """Return the file of a video that a page plays, and a note where browsers cannot play it.

    Args:
        path: The video's file, if it has one.
        copy: The copy that browsers play, which may not exist yet.
        command: What makes it.
        why: Why browsers cannot play the file, if that is known; empty: they can.
    """
    if copy.is_file() and not _newer(path, copy) and not _same(path, copy):
        return copy, ""
    if path is None:
        return None, ""
    from actionspan.video.playable import playback_fault

    if not path.is_file():
        return None, f"The video file was not found: {path}"
    try:
        why = playback_fault(path) if why is None else why
    except InputError as error:
        return None, str(error)
    if not why:
        return path, ""
    return (
        path,
        f"Your browser cannot play this file ({why}). To make a copy that it can play: {command}",
    )


def _same(path: Path | None, copy: Path) -> bool:
    """Return whether a video lies where its copy belongs."""
    return path is not None and path.is_file() and path.samefile(copy)


def _newer(path: Path | None, copy: Path) -> bool:
    """Return whether a video has been replaced since its copy was made."""
    return path is not None and path.is_file() and path.stat().st_mtime > copy.stat().st_mtime
