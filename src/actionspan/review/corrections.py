"""What people correct in the served page: a file for each video, and corrections.csv of all."""

import threading
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from actionspan.dataset.formats.corrections import HEADER
from actionspan.dataset.formats.rows import csv_text
from actionspan.errors import InputError
from actionspan.files.storage import read_json, write_json, write_text
from actionspan.files.text import file_name

_NEVER: Mapping[str, Any] = {"version": 0, "state": None, "rows": []}


class Conflict(Exception):
    """Another window has changed the video since; `kept` is what it wrote."""

    def __init__(self, kept: Mapping[str, Any]) -> None:
        super().__init__("changed in another window")
        self.kept = kept


class Corrections:
    """The corrections in a folder, safe on the disk before a call returns.

    Each video has a `version`, which rises with each change, the `state` that the page keeps of it,
    and the `rows` of corrections.csv that say the same.

    Args:
        folder: Made at the first change.
        videos: Ids that corrections may be about.
        table: The CSV file of the videos that are done.

    Raises:
        InputError: A file in the folder is damaged.
    """

    def __init__(self, folder: Path, videos: Collection[str], table: Path) -> None:
        self.folder, self.table = folder, table
        self._lock = threading.Lock()
        self._kept: dict[str, Mapping[str, Any]] = {}
        for video_id in videos:
            path = self._path(video_id)
            self._kept[video_id] = _checked(path, read_json(path)) if path.exists() else _NEVER
        self._write_table()  # a kill may have come before it

    def all(self) -> dict[str, Mapping[str, Any]]:
        """Return what is kept of each video that was ever changed."""
        with self._lock:
            return {name: kept for name, kept in self._kept.items() if kept["version"]}

    def done(self) -> list[str]:
        """Return the videos that were corrected as a whole."""
        return sorted(name for name, kept in self.all().items() if _is_done(kept))

    def save(
        self, video_id: str, version: int, state: Mapping[str, Any] | None, rows: Sequence[Any]
    ) -> int:
        """Keep a change of the given version, and return the next.

        Raises:
            KeyError: There is no such video.
            Conflict: The version is not the last one.
            ValueError: The state is none, or the rows are not those of this video.
        """
        if not isinstance(state, dict | None):
            raise ValueError("state: neither an object nor null")
        rows = _sound(video_id, rows)
        with self._lock:
            kept = self._kept[video_id]
            if kept["version"] != version:
                raise Conflict(kept)
            content = {"version": version + 1, "state": state, "rows": rows}
            self.folder.mkdir(parents=True, exist_ok=True)
            write_json(self._path(video_id), content, indent=None)
            self._kept[video_id] = content
            self._write_table()
        return version + 1

    def _write_table(self) -> None:
        done = [one for _, one in sorted(self._kept.items()) if _is_done(one)]
        text = csv_text(HEADER, (row for one in done for row in one["rows"]))
        if any(one["version"] for one in self._kept.values()) or self.table.exists():
            write_text(self.table, text)

    def _path(self, video_id: str) -> Path:
        return self.folder / f"{file_name(video_id)}.json"


def _is_done(kept: Mapping[str, Any]) -> bool:
    return bool(kept["state"] and kept["state"].get("done"))


def _sound(video_id: str, rows: Any) -> list[list[str]]:
    """Return rows of corrections.csv as texts, or raise ValueError."""
    if not isinstance(rows, list):
        raise ValueError("rows: not a list")
    for row in rows:
        if not (isinstance(row, list) and len(row) == len(HEADER)):
            raise ValueError(f"a row: not {len(HEADER)} cells")
        if row[0] != video_id or not all(isinstance(cell, str) for cell in row):
            raise ValueError(f"a row: not five texts about {video_id!r}")
    return rows


def _checked(path: Path, content: Any) -> Mapping[str, Any]:
    known = isinstance(content, dict) and content.keys() == _NEVER.keys()
    if known and isinstance(content["version"], int) and isinstance(content["state"], dict | None):
        checked: Mapping[str, Any] = content
        return checked
    raise InputError(f"{path}: not what `actionspan review` keeps of a video; move it away")
