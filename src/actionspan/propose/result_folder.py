"""A folder of proposals: each video's result is on the disk as soon as it is done.

`videos/{video}.json` holds everything of a video. The tables, chapters and figures are made from
it, so that a stopped call continues with the next video, and one that asks for other annotations or
fewer events runs no network. Modules that draw are imported where they are used: the process that
waits for another's results needs none of them.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from actionspan.annotations.formats.times import frames_of
from actionspan.errors import InputError, counted
from actionspan.proposals.segments import proposal_files
from actionspan.proposals.settings import ChapterSettings
from actionspan.propose.results import CURVES, Result, Shown, source_of
from actionspan.storage.checksums import fingerprint
from actionspan.storage.inputs import refuse_input
from actionspan.storage.writing import digest, read_json, write_json

if TYPE_CHECKING:
    from actionspan.annotations.tables import Instance
    from actionspan.dataset.recordings import Places
    from actionspan.video.zones import Cameras

_FOLDER = "videos"
_BESIDE = (".vtt", ".svg", ".jpg")  # chapters, figure and contact sheet
_TABLES = ("proposals.json", "proposals.csv", "events.json", "events.csv")
_SEAL = "digest"  # of the rest of a video's file


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
        replaces: Remove the results of models with a digest that begins with this word.
        cameras: The zones of videos; a result within other zones does not count as finished.

    Raises:
        InputError: Nothing can be written there, or it holds results of another model.
    """

    def __init__(
        self,
        folder: Path,
        model: str,
        *,
        overwrite: bool = False,
        replaces: str | None = None,
        cameras: "Cameras | None" = None,
    ) -> None:
        self.folder, self.model, self.overwrite = folder, model, overwrite
        self._cameras = cameras or {}
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
        kept = [one for one in others if not (replaces and one.model.startswith(replaces))]
        if kept and not overwrite:
            line = f"holds proposals of another model ({counted(len(kept), 'video')})"
            cure = "choose another folder, or --overwrite to replace them"
            raise InputError(f"--out {folder}: {line}: {cure}")
        for other in others:
            self.result_path(other.video_id).unlink(missing_ok=True)
            for path in self.beside(other.video_id):  # a user's own file may have such a name
                if path.suffix in other.files and fingerprint(path) == other.files[path.suffix]:
                    path.unlink()

    def beside(self, video_id: str) -> list[Path]:
        """Return the paths of a video's chapters, figure and contact sheet."""
        return [self.folder / f"{video_id}{suffix}" for suffix in _BESIDE]

    def result_path(self, video_id: str) -> Path:
        """Return the path of a video's result."""
        return self.folder / _FOLDER / f"{video_id}.json"

    def source_of(self, path: Path) -> dict[str, Any]:
        """Return the source of a result that is made of a video now."""
        found: dict[str, Any] = source_of(path)
        if not self._cameras:
            return found
        from actionspan.video.zones import zones_attributes, zones_of

        return found | zones_attributes(zones_of(self._cameras, path.stem))

    def finished(self, path: Path, *, made: bool = False) -> Result | None:
        """Return the result of a finished video, else None; `made` just now it is not redone."""
        result = None if self.overwrite and not made else self._read(self.result_path(path.stem))
        with suppress(InputError):
            if result is not None and result.source == self.source_of(path):
                return result
        return None

    def is_shown(self, result: Result, truth: "Sequence[Instance]", shown: Shown) -> bool:
        """Return whether a video's chapters and figures are there, whole, and show just this."""
        prints = {file.suffix: fingerprint(file) for file in self.beside(result.video_id)}
        return result.shown == digest(shown, list(truth)) and result.files == prints

    def put(self, result: Result) -> None:
        """Write the result of a video, which counts when its chapters and figures are there."""
        content = vars(result)
        sealed = {**content, _SEAL: digest(json.loads(json.dumps(content)))}
        write_json(self.result_path(result.video_id), sealed, indent=None)

    def show(self, result: Result, truth: "Sequence[Instance]", shown: Shown) -> None:
        """Write a video's chapters and its figures."""
        from actionspan.proposals.chapters import write_chapters
        from actionspan.report.contact_sheet import write_sheet
        from actionspan.report.figures.timeline_figure import draw_timeline

        chapters, picture, sheet = self.beside(result.video_id)
        # 1. chapters
        events = shown.events(result.events)
        how = ChapterSettings() if shown.top is None else ChapterSettings(chapters=shown.top)
        write_chapters(chapters, events, how)
        # 2. the timeline
        motion, probabilities = result.curves.get("motion"), None
        if motion is None:
            probabilities = np.array([result.curves[name] for name in CURVES]).T
        proposals = shown.proposals(result.proposals)
        segments = [row["segment"] for row in proposals]
        scores = [row["score"] for row in proposals]
        curve = None if motion is None else np.array(motion)
        given = (result.video_id, result.duration_seconds, probabilities, truth)
        draw_timeline(picture, *given, segments, scores, curve)
        # 3. the contact sheet
        write_sheet(sheet, Path(result.path), events)
        prints = {file.suffix: fingerprint(file) or "" for file in (chapters, picture, sheet)}
        self.put(replace(result, shown=digest(shown, list(truth)), files=prints))

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

    def _read(self, path: Path) -> Result | None:
        """Return a stored result; None if it is missing or damaged."""
        try:
            content = read_json(path)
            return Result(**content) if content.pop(_SEAL) == digest(content) else None
        except (InputError, TypeError, KeyError, AttributeError):
            return None


def write_tables(
    folder: Path,
    results: Callable[[], Iterable[Result]],
    shown: Shown,
    places: "Places | None" = None,
) -> int:
    """Write the tables of proposals and events, video by video; return the number of videos."""

    def frames(_: str, segment: Sequence[float]) -> Sequence[int]:
        rate = result.frames_per_second
        return frames_of(segment, rate, result.frame_seconds) if rate else ()

    count = 0
    labelled = any(result.labelled for result in results())
    firsts = ([*one.proposals[:1], *one.events[:1]] for one in results())
    zoned = any("zone" in row for rows in firsts for row in rows)
    paths = [folder / name for name in _TABLES]
    more = (places.columns, places.cells) if places else None
    how: Any = {"labelled": labelled, "zoned": zoned, "frames": frames, "more": more}
    with (
        proposal_files(*paths[:2], **how) as write_proposals,
        proposal_files(*paths[2:], **how) as write_events,
    ):
        for result in results():
            count += 1
            write_proposals(result.video_id, shown.proposals(result.proposals))
            write_events(result.video_id, shown.events(result.events))
    return count
