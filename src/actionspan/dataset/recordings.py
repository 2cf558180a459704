"""Consecutive files of a camera as recordings, by the numbers or the clock times in their names.

Files with the same name but for a number at its end, or for a date and time, are of one camera. A
missing number, or by the clock more than a second without a file, ends a recording: what happens is
never joined over a gap.
"""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from actionspan.annotations.tables import Video
from actionspan.dataset.containers import open_container, opened
from actionspan.dataset.playlists import (
    SUFFIX,
    Part,
    name_from,
    offsets,
    playlist_text,
)
from actionspan.dataset.timeline import readable
from actionspan.dataset.video_facts import probe_video
from actionspan.errors import InputError
from actionspan.jobs.progress import progress
from actionspan.storage.writing import read_json, write_json, write_text

_BY_NAME, _BY_METADATA = "name", "metadata"
_JUMP = 1.0  # seconds: names have whole ones, so clocks of files without a gap differ by less
_STAMP = re.compile(
    r"(?<!\d)((?:19|20)\d\d)([-_.]?)(\d\d)\2(\d\d)[-_. T]{0,3}"
    r"(\d\d)[-_.:h]?(\d\d)[-_.:m]?(\d\d)s?(?:[.,]?(\d{3}))?(?!\d)"
)
_NUMBER = re.compile(r"(.*?)(\d{1,15})")
_GOPRO = re.compile(r"(G[HXP])(\d\d)(\d{4})")  # the chapter, then the number of the recording


class Recording(NamedTuple):
    """Files that follow each other without a gap; `clocks` are when each began, if known."""

    parts: list[Part]
    clocks: list[datetime | None]

    @property
    def video_id(self) -> str:
        """The name of the first file; of several files it ends with -joined."""
        return self.parts[0].path.stem + "-joined" * (len(self.parts) > 1)


class _File(NamedTuple):
    video: Video
    key: tuple[str, ...]  # equal for the files of a camera
    number: int | None
    at: datetime | None


def stamp_of(name: str) -> tuple[datetime | None, tuple[str, ...]]:
    """Return the first date and time in a name, and the rest of it without digits behind."""
    for found in _STAMP.finditer(name):
        year, _, *rest, fraction = found.groups()
        with suppress(ValueError):
            month, day, hour, minute, second = map(int, rest)
            at = datetime(int(year), month, day, hour, minute, second, int(fraction or 0) * 1000)
            return at, (name[: found.start()], re.sub(r"\d+", "", name[found.end() :]))
    return None, ()


def find_recordings(
    videos: Mapping[str, Path], clock: str | None, *, join: bool, quiet: bool = False
) -> tuple[list[Recording], int]:
    """Return the recordings that videos are, and how many could not be read.

    Args:
        videos: Files by id. Standard error has a line for each that cannot be read, which is a gap.
        clock: Where the start of a file is from, `name` or `metadata`, or the start of the
            only recording; None: no clock is wanted, and that in names shows order and gaps.
        join: Join files; else each is a recording.
        quiet: Show no progress.

    Raises:
        InputError: Two files have the same time or number, clocks overlap, files that follow each
            other cannot be joined, or the start of a file is not known.
    """
    # 1. the files
    start = None if clock in (None, _BY_NAME, _BY_METADATA) else _given(str(clock))
    found, broken = dict[tuple[str, ...], list[_File]](), 0
    paths: Iterable[Path] = videos.values()
    for path in paths if quiet else progress(paths, "files", len(videos), "file"):
        video = probe_video(path, checksum=False)
        if video.error:
            print(f"{path}: {video.error}", file=sys.stderr)
            broken += 1
            continue
        file = _file_of(video, clock)
        found.setdefault(file.key if join else (path.stem,), []).append(file)
    # 2. those without a gap between them
    recordings: list[Recording] = []
    for files in found.values():
        files.sort(key=lambda file: (file.at or datetime.min, file.number or 0, file.video.path))
        runs = [files[:1]]
        for before, after in pairwise(files):
            if _follows(before, after):
                _check_alike(before.video, after.video)
                runs[-1].append(after)
            else:
                runs.append([after])
        for run in runs:
            parts = [Part(file.video.path, file.video.duration_seconds) for file in run]
            clocks = [file.at if clock else None for file in run]
            if start is not None:
                clocks = [start + timedelta(seconds=at) for at in offsets(parts)]
            recordings.append(Recording(parts, clocks))
    if start is not None and len(recordings) > 1:
        what = f"the start of one recording, and there are {len(recordings)}"
        raise InputError(f"--clock {clock}: {what}; use name or metadata")
    return recordings, broken


def _file_of(video: Video, clock: str | None) -> _File:
    name = video.path.stem
    at, key = stamp_of(name)
    number = None
    if at is None:
        chapter, numbered = _GOPRO.fullmatch(name), _NUMBER.fullmatch(name)
        if chapter:
            key, number = (chapter[1], chapter[3]), int(chapter[2])
        elif numbered:
            key, number = (numbered[1],), int(numbered[2])
        else:
            key = ("", "", name)  # alone
    if clock == _BY_METADATA:
        at = _creation_time(video.path)
    elif clock == _BY_NAME and at is None:
        what = "no date and time in its name, such as 20240131_235958"
        raise InputError(f"{video.path}: {what}; use --clock metadata, or a start")
    return _File(video, key, number, at)


def _creation_time(path: Path) -> datetime:
    """Return the `creation_time` of a file's container, in its own zone, which is mostly UTC."""
    with readable(path), open_container(path) as container:
        text = container.metadata.get("creation_time", "")
    with suppress(ValueError):
        return datetime.fromisoformat(text).replace(tzinfo=None)
    raise InputError(f"{path}: no creation_time in its metadata; use --clock name, or a start")


def _given(text: str) -> datetime:
    at, _ = stamp_of(text)
    with suppress(ValueError):
        return at or datetime.fromisoformat(text).replace(tzinfo=None)
    raise InputError(f"--clock {text}: name, metadata, or a start such as 2024-01-31T23:59:58")


def _follows(before: _File, after: _File) -> bool:
    """Return whether two files of a camera follow each other without a gap.

    Raises:
        InputError: They are of the same time.
    """
    first, second = before.video.path, after.video.path
    if before.at is None or after.at is None:
        if before.number == after.number:
            raise InputError(f"{second}: the same number as {first}; rename or leave out one")
        return after.number == (before.number or 0) + 1
    if before.at == after.at:
        raise InputError(f"{second}: begins at {after.at}, as {first} does; leave out one")
    end = before.at + timedelta(seconds=before.video.duration_seconds)
    gap = (after.at - end).total_seconds()
    if gap < -_JUMP:
        what = f"begins at {after.at}, but {first} lasts until {end}"
        raise InputError(f"{second}: {what}; correct the clock, or leave out one")
    return gap <= _JUMP


def _check_alike(before: Video, after: Video) -> None:
    """Raise InputError if FFmpeg cannot decode two files one after the other as one stream."""
    sizes = [f"{video.width}×{video.height} pixels" for video in (before, after)]
    cure = "move one to another folder"
    if sizes[0] != sizes[1]:
        what = f"{sizes[1]}, and {before.path} before it has {sizes[0]}"
        raise InputError(f"{after.path}: {what}; {cure}")
    if _streams(before.path) != _streams(after.path):
        what = f"other codecs or streams than {before.path} before it"
        raise InputError(f"{after.path}: {what}, so they are not one recording; {cure}")


def _streams(path: Path) -> list[tuple[Any, ...]]:
    """Return what files of a recording have in common."""
    with readable(path), opened(path) as (container, best):
        found: list[tuple[Any, ...]] = [(container.format.name, best.index)]
        for stream in (*container.streams.video, *container.streams.audio):
            codec: Any = stream.codec_context
            head = b"" if codec is None or codec.name == "h264" else bytes(codec.extradata or b"")
            name = "" if codec is None else codec.name  # H.264 has its head in the stream too
            rate = getattr(codec, "sample_rate", None)
            found.append((stream.index, stream.type, name, stream.time_base, rate, head))
    return found


def write_recordings(recordings: Sequence[Recording], folder: Path) -> dict[str, Path]:
    """Write the list of files of each recording; return the videos that they are, by id.

    A recording of one file is that file. A list that has not changed is not written again.
    """
    videos = {}
    for one in recordings:
        path = folder / f"{one.video_id}{SUFFIX}"
        status = [part.path.stat() for part in one.parts]
        remarks = [f"{each.st_size} bytes, modified {each.st_mtime_ns}" for each in status]
        text = playlist_text(one.parts, name_from(folder), remarks)
        if not path.is_file() or path.read_bytes() != text.encode():
            write_text(path, text)
        videos[one.video_id] = path if len(one.parts) > 1 else one.parts[0].path
    return videos


class Places:
    """Which file, and which clock time, a time of a video is.

    A file of JSON in a folder of results has, for each video that was joined or has a clock, the
    files with their `start` in seconds.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "recordings.json"
        known = read_json(self._path) if self._path.is_file() else {}
        self._known: dict[str, list[dict[str, Any]]] = known
        self.columns = self._columns()

    def add(self, recordings: Sequence[Recording]) -> None:
        """Note recordings, and write the file."""
        for one in recordings:
            rows = []
            for part, at, clock in zip(one.parts, offsets(one.parts), one.clocks, strict=True):
                text = {"clock": clock.isoformat()} if clock else {}
                rows.append({"file": part.path.name, "start": round(at, 3), **text})
            self._known.pop(one.video_id, None)
            if len(rows) > 1 or "clock" in rows[0]:
                self._known[one.video_id] = rows
        if self._known or self._path.is_file():
            write_json(self._path, self._known)
        self.columns = self._columns()

    def _columns(self) -> tuple[str, ...]:
        """Return the columns that tables have for them."""
        files = ("start_file", "start_in_file", "end_file", "end_in_file")
        joined = any(len(rows) > 1 for rows in self._known.values())
        clocked = any("clock" in rows[0] for rows in self._known.values())
        return files * joined + ("start_clock", "end_clock") * clocked

    def cells(self, video_id: str, segment: Sequence[float]) -> list[object]:
        """Return the cells of a segment of a video in those columns."""
        found: dict[str, object] = {}
        for edge, seconds in zip(("start", "end"), segment, strict=True):
            # a border belongs to the file that begins there, unless a segment ends there
            rows = [
                row
                for row in self._known.get(video_id, ())
                if row["start"] < seconds + (0.0005 if edge == "start" else -0.0005)
            ] or self._known.get(video_id, ())[:1]
            if rows:
                inside = max(seconds - rows[-1]["start"], 0.0)
                found |= {f"{edge}_file": rows[-1]["file"], f"{edge}_in_file": f"{inside:.3f}"}
                if "clock" in rows[-1]:
                    at = datetime.fromisoformat(rows[-1]["clock"]) + timedelta(seconds=inside)
                    found[f"{edge}_clock"] = at.isoformat(timespec="milliseconds")
        return [found.get(column, "") for column in self.columns]

    def files(self, video_id: str) -> list[tuple[float, str, str | None]]:
        """Return start, name and clock (None: not known) of each file of a video, for the page."""
        rows = self._known.get(video_id, ())
        return [(row["start"], row["file"], row.get("clock")) for row in rows]
