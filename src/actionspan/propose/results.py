"""The result of a video: rows to list, curves and facts.

Modules that decode are imported where they are used: a process that waits for another's results
needs none of them.
"""

import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from actionspan.errors import InputError
from actionspan.proposals.segments import Row

if TYPE_CHECKING:
    from actionspan.propose.proposed import Proposed


_THUMBNAILS = 16
_MOST_PARTS = 2000  # of a curve of sound: more than a screen has pixels
_MILLISECONDS = 3  # decimals of a second
CURVES = ("start", "actionness", "end")


@dataclass(frozen=True, kw_only=True)
class Shown:
    """The rows to list."""

    top: int | None = None  # the most events of a video
    minimum: Mapping[str, float] = field(default_factory=dict)  # score by label; "": of all others
    shortest: float = 0.0  # in seconds
    longest: float = np.inf
    between: tuple[float, float] = (0.0, np.inf)  # a row that only reaches into it is listed

    def events(self, rows: Sequence[Row]) -> list[Row]:
        """Return the listed events, best first."""
        return [row for row in rows if self._passes(row, row.get("label", ""))][: self.top]

    def proposals(self, rows: Sequence[Row]) -> list[Row]:
        """Return the listed proposals, best first: the minimum of a label is for events alone."""
        return [row for row in rows if self._passes(row, "")]

    def _passes(self, row: Row, label: str) -> bool:
        (start, end), (first, last) = row["segment"], self.between
        if not (self.shortest <= end - start <= self.longest and start < last and end > first):
            return False
        every = self.minimum.get("", -np.inf)
        return "rank" in row or row["score"] >= self.minimum.get(label, every)

    def summary(self, result: "Result") -> dict[str, Any]:
        """Return the line of `--json` of a video."""
        names = ("duration_seconds", "still")
        known = {"video": result.path, **{name: getattr(result, name) for name in names}}
        return {**known, "events": self.events(result.events)}


@dataclass(frozen=True, kw_only=True)
class Result:
    """The stored result of a video: rows with times in milliseconds, and curves for its figure."""

    video_id: str
    path: str
    duration_seconds: float
    labelled: bool
    proposals: Sequence[Row]
    events: Sequence[Row]
    # start, actionness and end, or motion; and of sound, in dB
    curves: Mapping[str, Sequence[float | None]]
    model: str  # digest of the model
    source: Mapping[str, Any]  # size and time of the video file; the digest of its zones, if any
    thumbnails: Sequence[tuple[float, str]] = ()  # seconds and JPEG in base64, in order of time
    frames_per_second: float | None = None
    frame_seconds: Sequence[float] = ()  # when each frame is shown, where that is not at the rate
    unplayable: str = ""  # why a browser may not play the file
    still: float = 0.0  # share of the video in which nothing changes
    shown: str = ""  # digest of the content of figure and chapters; empty before they are made
    files: Mapping[str, str] = field(default_factory=dict)  # fingerprints of those, by suffix

    def at(self, path: Path) -> "Result":
        """Return it with the path of the video, which may have moved since."""
        return replace(self, path=str(path.absolute()))


def result_of(
    proposed: "Proposed",
    path: Path,
    model: str,
    source: Mapping[str, Any],
    before: Result | None = None,
    *,
    sound: bool = False,
) -> Result:
    """Return the result to store; `before` is an earlier result of the same file.

    With `sound` it has loudness and change in up to 2,000 parts of the video, None without
    sound; a video without any has no such curves.
    """
    curves: dict[str, list[float | None]] = {}
    if proposed.motion is not None:
        curves["motion"] = np.round(proposed.motion.astype(float), 4).tolist()
    if proposed.probabilities is not None:
        columns = np.round(proposed.probabilities.astype(float), 4).T.tolist()
        curves.update(zip(CURVES, columns, strict=True))
    if sound:
        from actionspan.video.sound import COLUMNS, RATE, in_parts, sound_curves

        seconds, own = proposed.duration_seconds, len(next(iter(curves.values())))
        parts = max(own, min(int(RATE * seconds), _MOST_PARTS))
        loudness = in_parts(sound_curves(path, seconds), seconds, parts).T.astype(float)
        if np.isfinite(loudness).any():
            for name, curve in zip(COLUMNS, np.round(loudness, 1).tolist(), strict=True):
                curves[name] = [None if math.isnan(value) else value for value in curve]
    return Result(
        video_id=path.stem,
        path=str(path),
        duration_seconds=round(proposed.duration_seconds, _MILLISECONDS),
        labelled=bool(proposed.classes),
        proposals=_rounded(proposed.rows()),
        events=_rounded(proposed.event_rows()),
        curves=curves,
        model=model,
        source=source,
        still=round(proposed.still, _MILLISECONDS),
        **(_facts(path) if before is None else {name: getattr(before, name) for name in _FACTS}),
    )


_FACTS = ("thumbnails", "frames_per_second", "frame_seconds", "unplayable")


def _facts(path: Path) -> dict[str, Any]:
    """Return the facts of a video file by their names in `Result`."""
    from actionspan.dataset.timeline import read_timeline, uneven
    from actionspan.video.playable import playback_fault
    from actionspan.video.thumbnails import thumbnails

    pictures = [
        (round(seconds, _MILLISECONDS), b64encode(jpeg).decode())
        for seconds, jpeg in thumbnails(path, _THUMBNAILS)
    ]
    timeline = read_timeline(path)
    times = uneven(timeline.seconds, timeline.rate).tolist()
    values = (pictures, timeline.rate, times, playback_fault(path))
    return dict(zip(_FACTS, values, strict=True))


def _rounded(rows: Sequence[Row]) -> list[Row]:
    times = [[round(seconds, _MILLISECONDS) for seconds in row["segment"]] for row in rows]
    return [{**row, "segment": segment} for row, segment in zip(rows, times, strict=True)]


def source_of(path: Path) -> dict[str, int]:
    """Return the size and time by which a file is recognised."""
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None
    return {"bytes": status.st_size, "modified_ns": status.st_mtime_ns}
