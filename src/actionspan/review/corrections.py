"""What people correct in the served page: a file for each video, and corrections.csv of all."""

import csv
import json
import os
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from actionspan.annotations.formats.corrections import HEADER, KEPT, LEFT_OUT, table_text
from actionspan.annotations.formats.records import UNLABELLED, RawInstance, quoted, text_problem
from actionspan.errors import InputError, JobError
from actionspan.storage.text import file_name, read_cell, read_utf8
from actionspan.storage.writing import read_json, write_json, write_text

_NEVER: Mapping[str, Any] = {"version": 0, "state": None, "rows": []}
_WIDTHS = (len(HEADER), len(HEADER) + 1)  # of a row, without a subject and with one
_FEW = 8  # names in a line
_ROOM = 100  # levels of nesting that are left when all is written or sent
_ANOTHER = "not the file that was corrected: untick and tick Done to learn from it all the same"


class Conflict(Exception):
    """Another window has changed the video since; `kept` is its version."""

    def __init__(self, kept: Mapping[str, Any]) -> None:
        super().__init__("changed in another window")
        self.kept = kept


class Corrections:
    """The corrections in a folder, safe on the disk before a call returns.

    Each video has a `version`, which rises with each change, the `state` that the page keeps of it,
    the `rows` of corrections.csv that mean the same, and the fingerprint of the `file` that was
    corrected. What cannot be read, or does not count, ends nothing: see `remarks`.

    Args:
        folder: Made at the first change.
        videos: Ids that corrections may be about; rows of others stay in the table.
        table: The CSV file of the videos that are done.
    """

    def __init__(self, folder: Path, videos: Collection[str], table: Path) -> None:
        self.folder, self.table, self._place = folder, table, table.parent.stat()
        self._lock = threading.Lock()
        self._kept: dict[str, Mapping[str, Any]] = dict.fromkeys(videos, _NEVER)
        self._others: dict[str, list[list[str]]] = {}  # rows by video, of those not in `_kept`
        self._files: dict[str, str] = {}  # fingerprints of the videos that the page shows
        self._remarks: dict[str, str] = {}
        # 1. The file of each video; nothing is saved over one that cannot be read.
        own = {self._path(video_id): video_id for video_id in videos}
        for path in sorted(folder.glob("[!.]*.json")):
            video_id = own.get(path, "")
            try:
                kept = _checked(path, read_json(path))
            except InputError as error:
                self._remarks[video_id or path.name] = str(error)
                self._kept.pop(video_id, None)
                continue
            if path in own:
                self._kept[video_id] = kept
                if problem := _problem(kept["rows"]):
                    self._remarks[video_id] = f"its corrections do not count: {problem}"
            elif kept["rows"] and _is_done(kept):
                self._others[kept["rows"][0][0]] = kept["rows"]
        # 2. The table's rows of videos with unreadable files.
        missing, known = sorted(self._others), {*self._kept, *self._others}
        for row in self._table_rows() if self._remarks else ():
            if row[0] not in known:
                self._others.setdefault(row[0], []).append(row)
        if missing:
            names = ", ".join(missing[:_FEW]) + ", …" * (len(missing) > _FEW)
            self._remarks[table.name] = f"keeps the rows of videos that are not there: {names}"
        # 3. The table: a kill may have come before it. Without room for it the page is shown.
        try:
            self._write_table()
        except (JobError, OSError) as error:
            self._remarks[table.name] = str(error)

    def _table_rows(self) -> list[list[str]]:
        with suppress(InputError, csv.Error):
            lines = csv.reader(read_utf8(self.table).splitlines(keepends=True))
            rows = [[read_cell(cell) for cell in line] for line in lines]
            return [row for row in rows[1:] if len(row) == len(rows[0]) in _WIDTHS]
        return []

    def shown_of(self, video_id: str, file: str) -> None:
        """Note the file of a video that the page shows: later corrections are about that file."""
        self._files[video_id] = file

    def remarks(self) -> dict[str, str]:
        """Return by video, or by name of a file, why corrections do not count or are not shown."""
        with self._lock:
            another = {
                name: _ANOTHER
                for name, kept in self._kept.items()
                if name in self._files and kept.get("file", self._files[name]) != self._files[name]
            }
            return {**self._remarks, **another}

    def check_place(self) -> None:
        """Raise JobError if another folder has replaced the one that was opened."""
        with suppress(OSError):
            if os.path.samestat(self.table.parent.stat(), self._place):
                return
        raise JobError(f"{self.table.parent}: was moved or deleted meanwhile; put it back")

    def all(self) -> dict[str, Mapping[str, Any]]:
        """Return the corrections of each video that was ever changed."""
        with self._lock:
            return {name: kept for name, kept in self._kept.items() if kept["version"]}

    def done(self) -> list[str]:
        """Return the videos that were corrected as a whole, without those with a remark."""
        return self._counting(_is_done)

    def judged(self) -> list[str]:
        """Return the other videos, without a remark, in which single events were judged."""
        return self._counting(lambda kept: kept["state"] and kept["rows"] and not _is_done(kept))

    def to_learn(self) -> dict[str, int]:
        """Return the versions of the videos to learn from, judged ones only if another is done."""
        kept, done = self.all(), self.done()
        names = [*done, *self.judged()] if done else []
        return {name: kept[name]["version"] for name in names}

    def _counting(self, wanted: Callable[[Mapping[str, Any]], Any]) -> list[str]:
        wrong = self.remarks()
        return sorted(
            name for name, kept in self.all().items() if wanted(kept) and name not in wrong
        )

    def save(
        self, video_id: str, version: int, state: Mapping[str, Any] | None, rows: Sequence[Any]
    ) -> int:
        """Keep a change of the given version, and return the next.

        Raises:
            KeyError: The video does not exist.
            Conflict: The version is not the last one.
            ValueError: Something could not be kept, read again or learned from.
            InputError: The video's file in the folder cannot be read.
            JobError: Nothing can be written.
        """
        # 1. Before anything is written: a file is read at each start.
        if type(version) is not int:
            raise ValueError("version: not a whole number")
        rows = _sound(state, rows)
        if any(row[0] != video_id for row in rows):
            raise ValueError(f"a row: not about {video_id!r}")
        if problem := _problem(rows):
            raise ValueError(problem)
        # 2. The video's file, then the table.
        with self._lock:
            if video_id in self._remarks and video_id not in self._kept:
                raise InputError(self._remarks[video_id])
            kept = self._kept[video_id]
            if kept["version"] != version:
                raise Conflict(kept)
            content: dict[str, Any] = {"version": version + 1, "state": state, "rows": rows}
            if file := self._files.get(video_id, kept.get("file")):
                content["file"] = file
            try:
                self.check_place()
                write_json(self._path(video_id), content, indent=None)
                self._kept[video_id] = content
                self._remarks.pop(video_id, None)
                self._write_table()
            except OSError as error:
                raise JobError(f"{error.filename}: {error.strerror}") from None
        return version + 1

    def _write_table(self) -> None:
        own = {name: one["rows"] for name, one in self._kept.items() if _is_done(one)}
        done = sorted({**self._others, **own}.items())
        rows = (row for _, each in done for row in each if not _problem([row]))
        if done or any(one["version"] for one in self._kept.values()) or self.table.exists():
            write_text(self.table, table_text(rows))

    def _path(self, video_id: str) -> Path:
        return self.folder / f"{file_name(video_id)}.json"


def page_state(
    video_id: str, rows: Any, done: Any, seconds: float = 0.0
) -> tuple[dict[str, Any], list[list[str]]]:
    """Return the state that the page would keep of rows of corrections.csv, and all its rows.

    Args:
        video_id: The video of the rows.
        rows: A script's.
        done: Whether they are all that happens in the video.
        seconds: The duration of the video, 0: not known.

    Raises:
        ValueError: They are not rows, or a row is not a segment of the video.
    """
    if type(done) is not bool:
        raise ValueError("done: neither true nor false")
    segments: list[dict[str, Any]] = []
    for _, start, end, label, status in (rows := _sound(None, rows)):
        if status == "none":
            continue
        raw = RawInstance(start=start, end=end, label=label or UNLABELLED)
        place = [round(time, 3) for time in raw.checked(seconds)[:2]]
        one: dict[str, Any] = {"start": place[0], "end": place[1], "label": label}
        origin = None
        if status in ("accepted", "rejected"):  # an event of the page that is there
            # numbers as a browser writes them, in the page's key of the event
            shown = [int(time) if time.is_integer() else time for time in place]
            origin = {"key": f"event {shown[0]} {shown[1]} {label}", "kind": "event", **one}
        rejected = status == "rejected"
        segments.append({"id": len(segments) + 1, "rejected": rejected, "origin": origin, **one})
    if (
        done
        and all(row[-1] in LEFT_OUT for row in rows)
        and not any(row[-1] == "none" for row in rows)
    ):
        rows = [*rows, [video_id, "", "", "", "none"]]
    return {"segments": segments, "done": done}, rows


def _is_done(kept: Mapping[str, Any]) -> bool:
    return bool(kept["state"] and kept["state"].get("done"))


def _sound(state: Any, rows: Any) -> list[list[str]]:
    """Return rows of corrections.csv as texts.

    Raises:
        ValueError: The state or the rows are none, or hold what no file can.
    """
    if not isinstance(state, dict | None):
        raise ValueError("state: neither an object nor null")
    if not isinstance(rows, list):
        raise ValueError("rows: not a list")
    for row in rows:
        cells = row if isinstance(row, list) else []
        if len(cells) not in _WIDTHS or not all(isinstance(cell, str) for cell in cells):
            raise ValueError(f"a row: not {len(HEADER)} texts, or one more for a subject")
    content: Any = [state, rows]
    for _ in range(_ROOM):
        content = [content]
    try:
        json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        raise ValueError("it holds half of a character, or a number that is not finite") from None
    return rows


def _problem(rows: Sequence[Sequence[str]]) -> str:
    """Return why annotations could not have a row of corrections.csv, or an empty text."""
    try:
        for _, start, end, label, status, *more in rows:
            if status in KEPT:
                who = "".join(more)
                given = RawInstance(start=start, end=end, label=label or UNLABELLED, subject=who)
                given.checked()
            elif status not in LEFT_OUT:
                return f"status {quoted(status)}; known are {', '.join((*KEPT, *LEFT_OUT))}"
            elif problem := text_problem("".join((start, end, label, *more))):
                return problem
    except ValueError as error:
        return str(error)
    return ""


def _checked(path: Path, content: Any) -> Mapping[str, Any]:
    with suppress(ValueError, RecursionError):
        if isinstance(content, dict) and content.keys() >= _NEVER.keys():
            _sound(content["state"], content["rows"])
            if type(content["version"]) is int and isinstance(content.get("file", ""), str):
                return content
    raise InputError(f"{path}: not what `actionspan review` keeps of a video; move it away")
