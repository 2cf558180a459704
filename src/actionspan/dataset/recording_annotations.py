"""Annotations of recordings divided into their files, and annotations of files joined."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from actionspan.annotations.formats.records import RawInstance, Record
from actionspan.dataset.playlists import is_playlist, offsets, read_parts
from actionspan.dataset.sharding import find_videos
from actionspan.dataset.timeline import readable

_AT_BORDER = 0.1  # seconds: an event that ends this close to its file's end reaches it


def by_file(records: Iterable[Record]) -> list[Record]:
    """Return sound records with recordings divided into their files, and events at the borders."""
    found = []
    for record in records:
        if record.path is None or not is_playlist(record.path):
            found.append(record)
            continue
        with readable(record.path):
            parts = read_parts(record.path)
        for (path, seconds), at in zip(parts, offsets(parts), strict=True):
            instances = []
            for raw, (start, end, _) in zip(record.instances, record.parsed(), strict=True):
                inside = max(start - at, 0.0), min(end - at, seconds)
                if inside[0] < inside[1] or (start == end and 0 <= start - at < seconds):
                    instances.append(replace(raw, start=inside[0], end=inside[1]))
            own: dict[str, Any] = {
                "video_id": path.stem,
                "media": path.name,
                "path": path,
                "instances": instances,
            }
            found.append(replace(record, seconds=seconds, frames=0, **own))
    return found


def by_recording(records: Iterable[Record], folder: Path) -> list[Record]:
    """Return sound records with the files of a recording as one record; inverse of `by_file`.

    An event that reaches the end of its file, and an equal one from the start of the next, are one.

    Args:
        records: Each with the `path` of its file.
        folder: The lists of files of recordings.

    Raises:
        InputError: The folder or a list in it cannot be read.
    """
    places = dict[Path | None, tuple[Path, float, float]]()
    borders, found = dict[Path | None, list[float]](), dict[str, Record]()
    for path in filter(is_playlist, find_videos(folder).values()):
        with readable(path):
            parts = read_parts(path)
        *borders[path], seconds = accumulate(part.seconds for part in parts)
        starts = zip(parts, offsets(parts), strict=True)
        places |= {part.path: (path, at, seconds) for part, at in starts}
    for record in records:
        if record.path not in places:
            found[record.video_id] = record
            continue
        path, at, seconds = places[record.path]
        for raw, (start, end, _) in zip(record.instances, record.parsed(), strict=True):
            raw.start, raw.end = start + at, end + at
        own: dict[str, Any] = {"video_id": path.stem, "media": path.name, "path": path}
        empty = replace(record, seconds=seconds, frames=0, instances=[], **own)
        found.setdefault(path.stem, empty).instances += record.instances
    for record in found.values():
        if record.path in borders:
            record.instances = _over_borders(record.instances, borders[record.path])
    return list(found.values())


def _over_borders(instances: Iterable[RawInstance], borders: Sequence[float]) -> list[RawInstance]:
    """Return instances by their start, with the parts on both sides of a border as one."""
    kept, reaching = list[RawInstance](), dict[tuple[object, ...], RawInstance]()

    def place(raw: RawInstance, seconds: float) -> tuple[object, ...]:
        near = [border for border in borders if abs(seconds - border) < _AT_BORDER]
        return (raw.label, raw.subject, raw.modifiers, *near)

    for raw in sorted(instances, key=lambda raw: raw.start):
        before = reaching.pop(place(raw, raw.start), None) if raw.start < raw.end else None
        if before is None:
            kept.append(raw)
        else:
            before.end = raw.end
        if len(ends := place(raw, raw.end)) > 3:
            reaching[ends] = before or raw
    return kept
