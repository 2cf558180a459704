"""The content of a page: its videos with their segments, charts and tables, as JSON for scripts.

Proposals and events are rows as files have them. In the JSON a segment is a list of start, end,
label and score, and of the subject that an annotation has, drawn by `assets/segments.js`.
"""

import base64
import hashlib
import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from actionspan.annotations.tables import Instance
from actionspan.evaluation.operating import Point
from actionspan.proposals.segments import Row

_SECONDS, _SHARES = 3, 4  # decimals


@dataclass(frozen=True, kw_only=True)
class PageVideo:
    """A video of the page.

    `file` is its path as seen from the folder of the page, empty where there is none; `note` is
    the reason why a browser cannot play it and the command that makes a copy that it can. `curves`
    are sampled at the centres of T equal parts of the video: `start`, `actionness` and `end`, each
    (T,) in 0…1, or `motion`, (T,) in pixels a frame; `loudness` and `change` in dB may have more
    parts. `events` are the distinct ones among the proposals, for a reader. `recall` is the mean
    over thresholds of tIoU, None where nothing is annotated.
    """

    video_id: str
    file: str
    duration_seconds: float
    frames_per_second: float | None = None
    subset: str = ""
    note: str = ""
    recall: float | None = None
    truth: Sequence[Instance] = ()
    proposals: Sequence[Row] = ()
    events: Sequence[Row] = ()
    curves: Mapping[str, Sequence[float | None]]
    thumbnails: Sequence[tuple[float, bytes]] = ()  # seconds and JPEG, in order of time
    gone: Sequence[Row] = ()  # events that an earlier model proposed, and this one does not
    before: int | None = None  # events listed by that model
    # of a recording or with a clock: start in seconds, name, and time of each file
    files: Sequence[tuple[float, str, str | None]] = ()


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
    thresholds: Mapping[str, Sequence[Point]] = field(default_factory=dict)  # of events, by label
    served: bool = False  # by `actionspan review`, which keeps corrections


def path_from(folder: Path, path: Path | None) -> str:
    """Return a file's path as seen from a folder, with forward slashes; empty without a file."""
    if path is None:
        return ""
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # another drive of Windows
        return path.absolute().as_uri()


def choose_videos(
    videos: Collection[str], recalls: Mapping[str, float], most: int
) -> tuple[list[str], str]:
    """Choose at most `most` videos to look at, and return how they are chosen.

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
    note = f"{most:,} of {len(videos):,} videos: {len(drawn):,} chosen at random"
    if third:
        note += f", the {third:,} with the lowest and the {third:,} with the highest recall"
    return sorted(chosen.union(drawn)), note


def index_of(page: Page) -> dict[str, Any]:
    """Return the data of the list of videos, and the data common to all."""
    labels = {each.label for video in page.videos for each in video.truth}
    labels |= {_label(row) for video in page.videos for row in video.proposals}
    scale = _scale(page)
    listed = any(video.events or video.gone for video in page.videos)
    return {
        "title": page.title,
        "scale": scale,
        "thresholds": page.thresholds if scale == "chance" else {},
        "labels": sorted(labels - {""}),
        "videos": [
            {
                "id": video.video_id,
                "file": _address(video.file),
                "duration": _number(video.duration_seconds, _SECONDS),
                "rate": _number(video.frames_per_second),
                "subset": video.subset,
                "note": video.note,
                "recall": _number(video.recall),
                "score": None if scale == "rank" else _best(video, by_events=listed),
                "events": len(video.events) if listed else None,
                "before": video.before,
                "gone": len(video.gone),
                "truths": len(video.truth),
                "proposals": len(video.proposals),
                **({"files": video.files} if video.files else {}),
            }
            for video in page.videos
        ],
    }


def _scale(page: Page) -> Literal["rank", "chance", "score"]:
    """Return the page's one scale: proposals have ranks where events have other scores."""
    if any("rank" in row for video in page.videos for row in video.events):
        return "rank"
    for video in page.videos:
        known = {(*row["segment"], row["score"]) for row in video.proposals}
        if any((*row["segment"], row["score"]) not in known for row in video.events):
            return "chance"
    return "score"


def _best(video: PageVideo, *, by_events: bool) -> float | None:
    rows = video.events if by_events else video.proposals
    return _number(max((row["score"] for row in rows), default=None))


def details_of(video: PageVideo) -> dict[str, Any]:
    """Return the part of a video that is parsed when a person selects it."""
    return {
        "truth": [
            _segment((each.start, each.end), each.label) + [each.subject] * bool(each.subject)
            for each in video.truth
        ],
        "proposals": _segments(video.proposals),
        "events": _segments(video.events),
        "gone": _segments(video.gone),
        "curves": {
            name: [_number(value, _SHARES) for value in values]
            for name, values in video.curves.items()
        },
        "thumbnails": [
            [_number(seconds, _SECONDS), base64.b64encode(jpeg).decode("ascii")]
            for seconds, jpeg in video.thumbnails
        ],
    }


def _segments(rows: Iterable[Row]) -> list[list[Any]]:
    ranked = sorted(rows, key=lambda row: -row["score"])
    return [
        [*_segment(row["segment"], _label(row), row["score"]), *[row.get("zone")][: "zone" in row]]
        for row in ranked
    ]


def _segment(times: Sequence[float], label: str, score: float | None = None) -> list[Any]:
    return [*(_number(seconds, _SECONDS) for seconds in times), label, _number(score)]


def _label(row: Row) -> str:
    return str(row.get("label") or "")


def summary_of(page: Page) -> dict[str, Any]:
    """Return the charts and tables."""
    charts = [
        {
            "title": chart.title,
            "kind": chart.kind,
            "xLabel": chart.x_label,
            "yLabel": chart.y_label,
            "note": chart.note,
            "x": [x if isinstance(x, str) else _number(x) for x in chart.x],
            "series": [
                {
                    "name": series.name,
                    "values": list(map(_number, series.values)),
                    "low": list(map(_number, series.low)),
                    "high": list(map(_number, series.high)),
                }
                for series in chart.series
            ],
        }
        for chart in page.charts
    ]
    return {"charts": charts, "tables": list(map(vars, page.tables))}


def _number(value: Any, decimals: int | None = None) -> float | None:
    """Return a number that JSON can hold, to 6 significant digits or to `decimals` decimals."""
    if value is None or not math.isfinite(value):
        return None
    exact = float(value)
    rounded = float(f"{exact:.6g}") if decimals is None else round(exact, decimals)
    return int(rounded) if rounded.is_integer() else rounded


def _address(file: str) -> str:
    """Return a path as an address: no name, whatever is in it, is taken for a scheme or a query."""
    if not file:
        return ""
    if Path(file).is_absolute():
        return Path(file).as_uri()
    parts = Path(file).as_posix().split("/")
    return "/".join(quote(os.fsencode(part), safe="") for part in parts)
