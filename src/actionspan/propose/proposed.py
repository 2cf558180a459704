"""The proposals of one video, and those that need no model: motion grouped by watershed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from actionspan.dataset.video_facts import probe_video
from actionspan.errors import InputError, counted
from actionspan.features.settings import RescaleSettings
from actionspan.features.steps import rescale
from actionspan.proposals.chapters import choose_chapters
from actionspan.proposals.grouping import group_proposals
from actionspan.proposals.segments import Row, label_rows, ranked_rows, result_rows, zoned_rows
from actionspan.proposals.settings import ChapterSettings
from actionspan.video.cuts import CutFinder
from actionspan.video.decode import Frame, read_frames
from actionspan.video.settings import FlowSettings, FrameSettings
from actionspan.video.snippets import snippet_batches
from actionspan.video.zones import (
    WHOLE,
    ZONE_MOTION,
    Cameras,
    ZoneMotion,
    motion_among,
    only_inside,
    zones_of,
)

if TYPE_CHECKING:
    import pandas

_SHOWN = 10  # events that a `Proposed` prints


@dataclass(frozen=True, kw_only=True)
class Proposed:
    """One video's proposals, best first, and the curves they come from.

    A model gives `probabilities`, (T, 3) start, actionness and end of T equal parts of the video;
    without a model there is `motion`, (T,), its magnitude. A model with a classifier gives the K
    `classes`, and `class_scores` of each proposal. The model span gives the distinct `events` for a
    reader too, with the chance of each to be right at tIoU 0.5, or none where it would rest on too
    little; other models have None. Where a camera has several zones, `zone_motion` decides which
    one a row is of.
    """

    duration_seconds: float
    segments: NDArray[Any]  # (N, 2) starts and ends in seconds
    scores: NDArray[Any]  # (N,) higher is better
    probabilities: NDArray[Any] | None = None
    motion: NDArray[Any] | None = None
    classes: tuple[str, ...] = ()
    class_scores: NDArray[Any] | None = None  # (N, K); see SegmentClassifier.scores
    events: NDArray[Any] | None = None  # (E, 2) in seconds, best first
    chances: NDArray[Any] | None = None  # (E,) 0…1
    event_classes: NDArray[Any] | None = None  # (E, K)
    still: float = 0.0  # share of snippets that are copies of the one before
    zone_motion: ZoneMotion | None = None

    def __repr__(self) -> str:
        events = self.event_rows()
        head = f"{counted(len(self.segments), 'proposal')} and {counted(len(events), 'event')}"
        lines = [f"Proposed: {head} in {self.duration_seconds:.2f} s; the first events:"]
        for row in events[:_SHOWN]:
            start, end = row["segment"]
            score = f"no. {row['rank']}" if "rank" in row else f"{row['score']:.3f}"
            cells = f"{start:9.2f} {end:9.2f} s  {score:>7}  {row.get('label', '')}"
            lines.append(cells.rstrip())
        return "\n".join(lines)

    def rows(self) -> list[Row]:
        """Return the proposals in ActivityNet result form, with labels where there are classes."""
        return self._labelled(self.segments, self.scores, self.class_scores)

    def event_rows(self) -> list[Row]:
        """Return the events in the same form; without any, proposals that do not overlap."""
        if self.events is None:
            chosen = choose_chapters(self.rows(), ChapterSettings())
            return [row for _, row in sorted(chosen, key=lambda ranked: ranked[0])]
        if self.chances is not None:
            return self._labelled(self.events, self.chances, self.event_classes)
        rows = zoned_rows(ranked_rows(self.events), self.zone_motion)
        scores = self.event_classes
        return rows if scores is None else label_rows(rows, self.classes, scores)

    def to_frame(self) -> "pandas.DataFrame":
        """Return the proposals as a table, best first.

        Its columns are `start_seconds`, `end_seconds` and `score`, and `label` and `label_score`
        where there are classes.

        Raises:
            ImportError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise ImportError("to_frame() needs pandas: pip install pandas") from None
        rows = self.rows()
        columns = ["start_seconds", "end_seconds", "score"]
        columns += ["label", "label_score"] if self.classes else []
        cells = [[*row["segment"], *(dict(row)[name] for name in columns[2:])] for row in rows]
        return pandas.DataFrame(cells, columns=columns)

    def _labelled(self, segments: Any, scores: Any, class_scores: Any) -> list[Row]:
        rows = zoned_rows(result_rows(segments, scores), self.zone_motion)
        return rows if class_scores is None else label_rows(rows, self.classes, class_scores)


def read_duration(path: Path) -> float:
    """Return the length of a video in seconds.

    Raises:
        InputError: The file is missing or cannot be decoded.
    """
    video = probe_video(path, checksum=False)
    if video.error:
        raise InputError(f"{path}: {video.error}")
    return video.duration_seconds


class OpenedVideo(NamedTuple):
    """A video with its first frame decoded, to be gone through once."""

    path: Path
    duration_seconds: float
    frames: Iterator[Frame]


def open_video(video: Path | str | OpenedVideo) -> OpenedVideo:
    """Return a video file ready to be gone through, which needs no model.

    Raises:
        InputError: The file is missing or cannot be decoded.
    """
    if isinstance(video, OpenedVideo):
        return video
    path = Path(video)
    duration = read_duration(path)
    frames = read_frames(path)
    return OpenedVideo(path, duration, chain(list(islice(frames, 1)), frames))


_BATCH = 16  # snippets


class MotionProposer:
    """Groups the magnitude of optical flow by watershed (TAG), without training.

    Its events are the video's bouts (`BoutFinder.found`). The zones of a video are
    found by its name among `cameras`; without any, whole frames count.
    """

    def __init__(self, cameras: Cameras = WHOLE) -> None:
        self.cameras = cameras

    def __repr__(self) -> str:
        return "MotionProposer(): motion, untrained"

    def propose(
        self,
        video: Path | str | OpenedVideo,
        on_progress: Callable[[float, float], None] | None = None,
    ) -> Proposed:
        """Return the proposals of one video file.

        Args:
            video: The file, or what `open_video` returned.
            on_progress: Called now and then with how much is done, and the length, in seconds.

        Raises:
            InputError: The file is missing or cannot be decoded.
        """
        settings = RescaleSettings()
        path, duration, frames = open_video(video)
        zones = zones_of(self.cameras, path.stem)
        batches, cuts = [], CutFinder(zones)
        seen = cuts.watch(only_inside(frames, zones))
        for batch in snippet_batches(
            seen, FrameSettings(mover_side=0), FlowSettings(), _BATCH, zones
        ):
            batches.append((batch.flow_magnitude, batch.time, batch.still, batch.zone_motion))
            if on_progress:
                on_progress(float(batch.time[-1]), duration)
        magnitude, times, still, moved = (
            np.concatenate(parts) for parts in zip(*batches, strict=True)
        )
        motion = rescale(magnitude, times, duration, settings.steps, settings.method, motion=True)
        segments, scores = group_proposals(motion, duration)
        return Proposed(
            duration_seconds=duration,
            segments=segments,
            scores=scores,
            motion=motion,
            events=cuts.bouts.found()[:, :2],
            still=float(still.mean()),
            zone_motion=motion_among({"time": times, ZONE_MOTION: moved}, zones),
        )
