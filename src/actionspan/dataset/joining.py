"""The flags that join files of a camera, apart from what reads the files, which imports more."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from actionspan.dataset.recordings import Places


def add_joining(parser: argparse.ArgumentParser) -> None:
    """Add the flags that `joined` reads."""
    join = "join consecutive files of a camera, by the numbers or times in their names, to one "
    join += "recording; a gap ends it"
    parser.add_argument("--join", action="store_true", help=join)
    clock = "give tables and the page clock times: name (the start of a file is in its name, such "
    clock += "as 20240131_235958), metadata (its creation_time), or the start itself"
    parser.add_argument("--clock", metavar="FROM", help=clock)


def joined(
    flags: argparse.Namespace, videos: dict[str, Path], out: Path
) -> tuple[dict[str, Path], "Places", int]:
    """Return the videos of a command by its flags, their places, and how many cannot be read.

    Lists of files and their facts are written into the folder `out`.
    """
    from actionspan.dataset.recordings import Places, find_recordings, write_recordings

    places = Places(out)
    if not (flags.join or flags.clock):
        return videos, places, 0
    quiet = getattr(flags, "quiet", False)
    found, broken = find_recordings(videos, flags.clock, join=flags.join, quiet=quiet)
    if flags.join:
        videos = write_recordings(found, out / "recordings")
    places.add(found)
    return videos, places, broken
