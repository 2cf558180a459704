"""Recordings of several files as one video: a list of the files in FFmpeg's form `ffconcat`.

FFmpeg reads the files one after the other on one time axis, so all that works for a video works for
a recording, also across the borders of its files. It never reads a list itself: it gets the parsed
files alone, in a text that is written here.
"""

import io
import os
import re
from collections.abc import Iterable, Sequence
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


def playlist_text(parts: Iterable[Part], folder: Path, remarks: Sequence[str] = ()) -> str:
    """Return the text of a list that lies in a folder, with remarks that FFmpeg passes over."""
    lines = [_HEAD, *(f"# {remark}" for remark in remarks)]
    for path, seconds in parts:
        try:
            name = Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
        except ValueError:  # another drive of Windows
            name = str(path.resolve())
        lines += [f"file '{_escaped(name)}'", f"duration {seconds:.6f}"]
    return "\n".join(lines) + "\n"


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
    files: list[Path] = []
    lengths: list[float] = []
    for number, line in enumerate(lines[1:], start=2):
        found = _LINE.fullmatch(line.strip())
        if found is None or "\0" in line:
            raise InputError(f"{path}: row {number}: want file '…' or duration SECONDS")
        if found[1] is not None:
            files.append(path.parent / found[1].replace(r"'\''", "'"))
        elif found[2] is not None:
            lengths.append(float(found[2]))
        if not 0 <= len(files) - len(lengths) <= 1:
            raise InputError(f"{path}: row {number}: each file needs a duration after it")
    if not files or len(files) != len(lengths):
        raise InputError(f"{path}: no file in it, or the last without a duration")
    for file in files:
        if is_playlist(file):
            raise InputError(f"{path}: {file.name} is a list of files too")
    return list(map(Part, files, lengths))


def first_file(path: Path) -> Path:
    """Return the first file of a recording, or of another video the path itself."""
    return read_parts(path)[0].path if is_playlist(path) else path


def offsets(parts: Sequence[Part]) -> list[float]:
    """Return where each file of a recording begins, in seconds."""
    return list(accumulate((part.seconds for part in parts[:-1]), initial=0.0))


def for_ffmpeg(parts: Iterable[Part]) -> io.BytesIO:
    """Return the list that FFmpeg's demuxer `concat` reads: absolute paths, and files only."""
    lines = [_HEAD]
    for path, seconds in parts:
        lines += [f"file 'file:{_escaped(str(path.absolute()))}'", f"duration {seconds:.6f}"]
    return io.BytesIO("\n".join([*lines, ""]).encode("utf-8", errors="surrogateescape"))


def _escaped(name: str) -> str:
    if any(not each.isprintable() for each in name):
        raise InputError(f"{name!r}: a control character in the name; rename the file")
    return name.replace("'", r"'\''")
