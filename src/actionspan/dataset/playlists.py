"""Recordings of several files as one video: a list of the files in FFmpeg's form `ffconcat`.

FFmpeg reads the files one after the other on one time axis, so all that works for a video works for
a recording, also across the borders of its files. It never reads a list itself: it gets the parsed
files alone, in a text that is written here.
"""

import os
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from actionspan.errors import InputError

SUFFIX = ".ffconcat"
_HEAD = "ffconcat version 1.0"
_MOST_BYTES = 1 << 24  # of a list
_LINE = re.compile(r"(?:file '((?:[^']|'\\'')*)'|duration (\d{1,9}(?:\.\d{1,9})?)|#.*|)")


class Part(NamedTuple):
    """A file of a recording, and how long it lasts."""

    path: Path
    seconds: float


def is_playlist(path: Path) -> bool:
    """Return whether a path names a recording of several files."""
    return path.suffix.lower() == SUFFIX


def playlist_text(
    parts: Iterable[Part], name: Callable[[Path], str], remarks: Iterable[str] = ()
) -> str:
    """Return the text of a list, with names of files as given, and remarks for nobody."""
    lines = [_HEAD, *(f"# {remark}" for remark in remarks)]
    for path, seconds in parts:
        if not str(path).isprintable():
            raise InputError(f"{str(path)!r}: a control character in the name; rename the file")
        escaped = name(path).replace("'", r"'\''")
        lines += [f"file '{escaped}'", f"duration {seconds:.6f}"]
    return "\n".join([*lines, ""])


def name_from(folder: Path) -> Callable[[Path], str]:
    """Return what names a file in a list that lies in a folder."""

    def name(path: Path) -> str:
        try:
            return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
        except ValueError:  # another drive of Windows
            return str(path.resolve())

    return name


def read_parts(path: Path) -> list[Part]:
    """Return the files of a recording in order.

    Raises:
        InputError: A line is none of those that are written here, or a file is such a list itself.
        OSError: The list cannot be read.
    """
    if path.stat().st_size > _MOST_BYTES:
        raise InputError(f"{path}: more than {_MOST_BYTES >> 20} MiB, which no list of files has")
    lines = path.read_bytes().decode("utf-8", errors="replace").splitlines()
    if lines[:1] != [_HEAD]:
        raise InputError(f"{path}: not a list of files: its first line is not {_HEAD!r}")
    files, lengths = list[Path](), list[float]()
    for row, line in enumerate(lines[1:], start=2):
        found = _LINE.fullmatch(line.strip())
        if found is None or "\0" in line:
            raise InputError(f"{path}: row {row}: neither file '…' nor duration SECONDS")
        if found[1] is not None:
            files.append(path.parent / found[1].replace(r"'\''", "'"))
            if is_playlist(files[-1]):
                raise InputError(f"{path}: row {row}: a list of files too")
        elif found[2] is not None:
            lengths.append(float(found[2]))
        if not 0 <= len(files) - len(lengths) <= 1:
            raise InputError(f"{path}: row {row}: each file needs a duration after it")
    if not files or len(files) != len(lengths):
        raise InputError(f"{path}: no file in it, or the last without a duration")
    return list(map(Part, files, lengths))


def first_file(path: Path) -> Path:
    """Return the first file of a recording, or of another video the path itself."""
    return read_parts(path)[0].path if is_playlist(path) else path


def offsets(parts: Sequence[Part]) -> list[float]:
    """Return where each file of a recording begins, in seconds."""
    return list(accumulate((part.seconds for part in parts[:-1]), initial=0.0))
