"""Lists of events that the page has shown, over rounds of learning and restarts."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from actionspan.arrays import temporal_iou
from actionspan.errors import InputError
from actionspan.proposals.segments import Row
from actionspan.storage.writing import read_json, write_json

_SAME = 0.5  # least tIoU of an event with one of an earlier list


class _Listed(NamedTuple):
    """The events of a video that the page lists."""

    events: Sequence[Row] = ()
    gone: Sequence[Row] = ()  # listed earlier; no current event is like them
    before: int | None = None  # number of events in the list before; None: it is the first


class Lists:
    """The events that the page has listed, so that a round of learning hides none.

    They are kept in a file, which a new start continues.

    Raises:
        InputError: The file is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._kept = path, dict[str, _Listed]()
        try:
            content: Mapping[str, Any] = read_json(path) if path.exists() else {}
            # digests of the zones in which events were found, by video
            self._zones = {name: one.pop("zones", "") for name, one in content.items()}
            self._kept = {name: _Listed(**one) for name, one in content.items()}
            for one in self._kept.values():
                temporal_iou(_times(one.events), _times(one.gone))
        except (AttributeError, KeyError, TypeError, ValueError):
            raise InputError(f"{path}: not what `review` keeps of lists; move it away") from None

    def follow(self, video_id: str, events: Sequence[Row], zones: str = "") -> _Listed:
        """Note the current events; return them with those that are no longer listed.

        A list within other `zones` is another list, and is forgotten.
        """
        last = self._kept.get(video_id, _Listed(events))
        if self._zones.get(video_id, "") != zones:
            last = _Listed(events)
        self._zones[video_id] = zones
        known = [*last.events, *last.gone]
        best = temporal_iou(_times(known), _times(events)).max(axis=1, initial=0)
        gone = [row for row, tiou in zip(known, best, strict=True) if tiou < _SAME]
        changed = _times(last.events) != _times(events)
        before = len(last.events) if changed else last.before
        self._kept[video_id] = _Listed(events, gone, before)
        return self._kept[video_id]

    def write(self) -> None:
        """Write the file."""
        content = {name: one._asdict() for name, one in self._kept.items()}
        for name, zones in self._zones.items():
            content[name] |= {"zones": zones} if zones else {}
        write_json(self._path, content, indent=None)


def _times(rows: Sequence[Row]) -> list[Sequence[float]]:
    return [row["segment"] for row in rows]
