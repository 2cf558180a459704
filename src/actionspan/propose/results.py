"""A folder of proposals: each video's result is on the disk as soon as it is done.

`videos/{video}.json` holds everything of a video. The tables, chapters and pictures are made from
it, so that a stopped call continues with the next video, and one that asks for other annotations or
fewer events runs no network. What decodes and draws is imported where it is used: the process that
waits for another's results needs neither.
"""

import json
import os
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from actionspan.dataset.formats.times import frames_of
from actionspan.errors import InputError, counted
from actionspan.proposals.segments import Row, proposal_files
from actionspan.proposals.settings import ChapterSettings
from actionspan.storage.checksums import fingerprint
from actionspan.storage.inputs import refuse_input
from actionspan.storage.writing import digest, read_json, write_json

if TYPE_CHECKING:
    from actionspan.dataset.tables import Instance
    from actionspan.propose.proposed import Proposed

_FOLDER = "videos"
_THUMBNAILS = 16
_MILLISECONDS = 3  # decimals of a second
_TABLES = ("proposals.json", "proposals.csv", "events.json", "events.csv")
_SEAL = "digest"  # of the rest of a video's file
_CURVES = ("start", "actionness", "end")


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What of the proposals is listed."""

    top: int | None = None  # at most so many events of a video
    minimum: Mapping[str, float] = field(default_factory=dict)  # by label of events; "": of all

    def events(self, rows: Sequence[Row]) -> list[Row]:
        """Return the listed events, best first."""
        every = self.minimum.get("", -np.inf)
        bars = [self.minimum.get(row.get("label", ""), every) for row in rows]
        listed = [row for row, bar in zip(rows, bars, strict=True) if _passes(row, bar)]
        return listed[: self.top]

    def proposals(self, rows: Sequence[Row]) -> list[Row]:
        """Return the listed proposals, best first: a label's bar is of its events alone."""
        return [row for row in rows if _passes(row, self.minimum.get("", -np.inf))]

    def summary(self, result: "Result") -> dict[str, Any]:
        """Return the line of `--json` of a video."""
        return {
            "video": result.path,
            "duration_seconds": result.duration_seconds,
            "still": result.still,
            "events": self.events(result.events),
        }


def _passes(row: Row, bar: float) -> bool:
    return "rank" in row or row["score"] >= bar


@dataclass(frozen=True, kw_only=True)
class Result:
    """What is kept of a video: rows with times in milliseconds, and curves for its picture."""

    video_id: str
    path: str
    duration_seconds: float
    labelled: bool
    proposals: Sequence[Row]
    events: Sequence[Row]
    curves: Mapping[str, Sequence[float]]  # start, actionness and end, or motion
    model: str  # digest of the model
    source: Mapping[str, int]  # size and time of the video file
    thumbnails: Sequence[tuple[float, str]] = ()  # seconds and JPEG in base64, in order of time
    frames_per_second: float | None = None
    frame_seconds: Sequence[float] = ()  # when each frame is shown, where that is not at the rate
    unplayable: str = ""  # why a browser may not play the file
    still: float = 0.0  # share of the video in which nothing changes
    shown: str = ""  # digest of what the picture and the chapters show; empty before they are made
    files: Mapping[str, str] = field(default_factory=dict)  # fingerprints of those, by suffix


def result_of(
    proposed: "Proposed",
    path: Path,
    model: str,
    source: Mapping[str, int],
    before: Result | None = None,
) -> Result:
    """Return what is stored of a video's proposals; `before` is what is known of the same file."""
    rate: float | None
    if before is None:
        from actionspan.dataset.video_facts import read_timeline, uneven
        from actionspan.video.playable import why_not_playable
        from actionspan.video.thumbnails import thumbnails

        pictures = thumbnails(path, _THUMBNAILS)
        seen = [
            (round(seconds, _MILLISECONDS), b64encode(jpeg).decode()) for seconds, jpeg in pictures
        ]
        timeline, unplayable = read_timeline(path), why_not_playable(path)
        rate, shown = timeline.rate, uneven(timeline.seconds, timeline.rate).tolist()
    else:
        seen, rate, shown = list(before.thumbnails), before.frames_per_second, before.frame_seconds
        unplayable = before.unplayable
    curves = {}
    if proposed.motion is not None:
        curves["motion"] = np.round(proposed.motion.astype(float), 4).tolist()
    if proposed.probabilities is not None:
        columns = np.round(proposed.probabilities.astype(float), 4).T.tolist()
        curves.update(zip(_CURVES, columns, strict=True))
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
        thumbnails=seen,
        frames_per_second=rate,
        frame_seconds=shown,
        unplayable=unplayable,
        still=round(proposed.still, _MILLISECONDS),
    )


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


def copy_path(folder: Path, video_id: str) -> Path:
    """Return the path of the copy of a video that browsers play, in a folder of results."""
    return folder / _FOLDER / f"{video_id}.mp4"


def lacks_copy(folder: Path, result: Result, path: Path) -> bool:
    """Return whether browsers do not play a video, and nothing is where its copy belongs."""
    return bool(result.unplayable) and not copy_path(folder, path.stem).exists()


def make_copy(
    folder: Path, path: Path, on_progress: Callable[[float], None] = lambda seconds: None
) -> None:
    """Write the copy that `lacks_copy` misses; see `write_playable`."""
    from actionspan.video.playable import write_playable

    copy = copy_path(folder, path.stem)
    copy.parent.mkdir(parents=True, exist_ok=True)
    write_playable(path, copy, on_progress=on_progress)
    made = path.stat().st_mtime_ns  # by a camera's clock it may be of tomorrow
    os.utime(copy, ns=(made, made))


class ResultFolder:
    """The results of one model in a folder.

    Args:
        folder: Made if it is missing.
        model: Digest of the model.
        overwrite: Remove the results of another model, and redo everything.
        replaces: Remove the results of models whose digest begins with this word.

    Raises:
        InputError: Nothing can be written there, or it holds results of another model.
    """

    def __init__(
        self, folder: Path, model: str, *, overwrite: bool = False, replaces: str | None = None
    ) -> None:
        self.folder, self.model, self.overwrite = folder, model, overwrite
        self.page = folder / "index.html"  # of all videos
        self._made = not folder.exists()
        for name in _TABLES:  # before anything is computed
            refuse_input(folder / name)
        try:
            (folder / _FOLDER).mkdir(parents=True, exist_ok=True)
            probe = folder / _FOLDER / f".{os.getpid()}.partial"
            probe.touch()
            probe.unlink()
        except OSError as error:
            reason = (error.strerror or "cannot be written").lower()
            raise InputError(f"--out {folder}: not a folder to write to: {reason}") from None
        others = [result for result in self.results() if result.model != model]
        kept = [
            other for other in others if replaces is None or not other.model.startswith(replaces)
        ]
        if kept and not overwrite:
            number = counted(len(kept), "video")
            raise InputError(
                f"--out {folder}: holds proposals of another model ({number}): choose another "
                "folder, or --overwrite to replace them"
            )
        for other in others:
            self._path(other.video_id).unlink(missing_ok=True)
            for path in self.beside(other.video_id):  # a user's own file may have such a name
                if path.suffix in other.files and fingerprint(path) == other.files[path.suffix]:
                    path.unlink()

    def beside(self, video_id: str) -> list[Path]:
        """Return the paths of a video's chapters, picture and contact sheet."""
        return [self.folder / f"{video_id}{suffix}" for suffix in (".vtt", ".svg", ".jpg")]

    def finished(self, path: Path, *, made: bool = False) -> Result | None:
        """Return the result of a finished video, else None; `made` just now it is not redone."""
        result = None if self.overwrite and not made else self._read(self._path(path.stem))
        with suppress(InputError):
            if result is not None and result.source == source_of(path):
                return result
        return None

    def is_shown(self, result: Result, truth: "Sequence[Instance]", shown: Shown) -> bool:
        """Return whether a video's chapters and pictures are there, whole, and show just this."""
        prints = {file.suffix: fingerprint(file) for file in self.beside(result.video_id)}
        return result.shown == digest(shown, list(truth)) and result.files == prints

    def put(self, result: Result) -> None:
        """Write the result of a video, which counts when its chapters and pictures are there."""
        content = vars(result)
        sealed = {**content, _SEAL: digest(json.loads(json.dumps(content)))}
        write_json(self._path(result.video_id), sealed, indent=None)

    def show(self, result: Result, truth: "Sequence[Instance]", shown: Shown) -> None:
        """Write a video's chapters and its pictures."""
        from actionspan.evaluation.timeline_figure import draw_timeline
        from actionspan.proposals.chapters import write_chapters
        from actionspan.report.contact_sheet import write_sheet

        chapters, picture, sheet = self.beside(result.video_id)
        events = shown.events(result.events)
        count = ChapterSettings().chapters if shown.top is None else shown.top
        write_chapters(chapters, events, ChapterSettings(chapters=count))
        motion, probabilities = result.curves.get("motion"), None
        if motion is None:
            probabilities = np.array([result.curves[name] for name in _CURVES]).T
        proposals = shown.proposals(result.proposals)
        draw_timeline(
            picture,
            result.video_id,
            result.duration_seconds,
            probabilities,
            truth,
            [row["segment"] for row in proposals],
            [row["score"] for row in proposals],
            None if motion is None else np.array(motion),
        )
        write_sheet(sheet, Path(result.path), events)
        prints = {file.suffix: fingerprint(file) or "" for file in (chapters, picture, sheet)}
        self.put(replace(result, shown=digest(shown, list(truth)), files=prints))

    def write_tables(self, shown: Shown) -> int:
        """Write proposals and events of all videos that are done here; return how many."""
        return write_tables(self.folder, self.results, shown)

    def results(self) -> Iterator[Result]:
        """Yield the results of all videos in the folder, by name."""
        for path in sorted((self.folder / _FOLDER).glob("*.json")):
            result = self._read(path)
            if result is not None and result.shown:
                yield result

    def remove_if_empty(self) -> None:
        """Remove the folder if it was made here and nothing was put into it."""
        for folder in (self.folder / _FOLDER, *[self.folder] * self._made):
            if not any(folder.iterdir()):
                folder.rmdir()

    def _path(self, video_id: str) -> Path:
        return self.folder / _FOLDER / f"{video_id}.json"

    def _read(self, path: Path) -> Result | None:
        """Return a stored result; None if it is missing or damaged."""
        try:
            content = read_json(path)
            return Result(**content) if content.pop(_SEAL) == digest(content) else None
        except (InputError, TypeError, KeyError, AttributeError):
            return None


def write_tables(folder: Path, results: Callable[[], Iterable[Result]], shown: Shown) -> int:
    """Write proposals and events of videos into a folder, read one by one; return of how many."""

    def frames(_: str, segment: Sequence[float]) -> Sequence[int]:
        rate = result.frames_per_second
        return frames_of(segment, rate, result.frame_seconds) if rate else ()

    count = 0
    labelled = any(result.labelled for result in results())
    paths = [folder / name for name in _TABLES]
    with (
        proposal_files(*paths[:2], labelled=labelled, frames=frames) as write_proposals,
        proposal_files(*paths[2:], labelled=labelled, frames=frames) as write_events,
    ):
        for result in results():
            count += 1
            write_proposals(result.video_id, shown.proposals(result.proposals))
            write_events(result.video_id, shown.events(result.events))
    return count
