"""What a page shows, in plain values: the stages fill it in, the page's scripts read it as JSON."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Span:
    """A part of a video in seconds: an instance, which has no score, or a proposal."""

    start: float
    end: float
    label: str = ""
    score: float | None = None


@dataclass(frozen=True, kw_only=True)
class Thumbnail:
    """A small picture of a video at a time in seconds."""

    seconds: float
    jpeg: bytes


@dataclass(frozen=True, kw_only=True)
class PageVideo:
    """A video of the page.

    `file` is its path as seen from the folder of the page, empty where there is none; `note` says
    why a browser cannot play it and what makes a copy that it can. `curves` are sampled at the
    centres of T equal parts of the video: `start`, `actionness` and `end`, each (T,) in 0…1, or
    `motion`, (T,) in pixels a frame. `events` are the distinct ones among the proposals, for a
    reader. `recall` is the mean over thresholds of tIoU, None where nothing is annotated.
    """

    video_id: str
    file: str
    duration_seconds: float
    frames_per_second: float | None = None
    subset: str = ""
    note: str = ""
    recall: float | None = None
    truth: Sequence[Span] = ()
    proposals: Sequence[Span] = ()  # best first
    events: Sequence[Span] = ()  # best first
    curves: Mapping[str, Sequence[float]]
    thumbnails: Sequence[Thumbnail] = ()  # in order of time


@dataclass(frozen=True, kw_only=True)
class Series:
    """One line, or one group of bars, of a chart; `low` and `high` are its interval."""

    name: str
    values: Sequence[float | None]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Lines over numbers, or bars over names; axis labels carry their units."""

    title: str
    x_label: str
    y_label: str
    x: Sequence[float] | Sequence[str]
    series: Sequence[Series]
    kind: Literal["lines", "bars"] = "lines"
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table; numbers are formatted already."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Page:
    """All of a page: without charts and tables it has no summary."""

    title: str
    subtitle: str = ""  # what made it: model, version
    videos: Sequence[PageVideo]
    charts: Sequence[Chart] = ()
    tables: Sequence[Table] = ()


def choose_videos(
    videos: Collection[str], recalls: Mapping[str, float], most: int
) -> tuple[list[str], str]:
    """Choose videos to look at, and say how they were chosen.

    Args:
        videos: The ids.
        recalls: Of the videos that are scored.
        most: At most so many are chosen.

    Returns:
        Ids in order, and a sentence that is empty if they are all.
    """
    if len(videos) <= most:
        return sorted(videos), ""
    scored = sorted((recalls[video], video) for video in videos if video in recalls)
    third = min(most // 3, len(scored) // 2)
    worst = [video for _, video in scored[:third]]
    best = [video for _, video in scored[len(scored) - third :]]
    chosen = {*worst, *best}
    # by a hash, so that a video that is added moves few others
    others = sorted(set(videos) - chosen, key=lambda video: hashlib.sha256(video.encode()).digest())
    drawn = others[: most - len(chosen)]
    said = f"{most:,} of {len(videos):,} videos: {len(drawn):,} drawn by chance"
    if third:
        said += f", the {third:,} of lowest and the {third:,} of highest recall"
    return sorted(chosen.union(drawn)), said
