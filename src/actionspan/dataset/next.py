"""The videos most worth correcting next: those with the least certain events for their length.

An event has a chance p to be right. To look at it answers a question worth its entropy,
H(p) = −p log₂ p − (1 − p) log₂ (1 − p) bits: 1 where the model does not know, 0 where it is sure.
The worth of a video is the sum over its events by the minutes that it takes to watch. A video
without events has none: events that a model misses everywhere stay unseen.
"""

import argparse
import json
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from actionspan.annotations.formats.records import drop_unsound, report_left_out
from actionspan.annotations.formats.registry import read_annotation_file
from actionspan.annotations.formats.times import to_number
from actionspan.annotations.tables import read_videos
from actionspan.dataset.matching import Names
from actionspan.errors import InputError, counted
from actionspan.settings import at_least_one
from actionspan.storage.json_stream import members
from actionspan.storage.writing import read_json


@dataclass(frozen=True, kw_only=True)
class _Worth:
    """The gain of correcting a video."""

    video: str
    bits_per_minute: float
    bits: float
    events: int
    seconds: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    add = parser.add_argument
    results = "the folder of a run (results), or one that `actionspan propose` wrote"
    add("results", type=Path, metavar="RESULTS", help=results)
    named = "videos that these name are left out"
    named += " (default: in a run, those it was trained and scored on)"
    add("--annotations", type=Path, metavar="FILE", help=named)
    model = "the model of the events, in the folder of a run (default: span)"
    add("--model", default="span", help=model)
    add("--top", type=int, default=10, metavar="N", help="how many videos (default: 10)")
    add("--json", action="store_true", help="print a JSON list")


def run(arguments: argparse.Namespace) -> None:
    """Print the videos, best first."""
    # 1. the worth of each video
    at_least_one("--top", arguments.top)
    folder = arguments.results
    if (folder / "videos").is_dir():
        done: Collection[str] = ()
        worths = list(_of_proposals(folder))
    elif (folder / "dataset" / "videos.tsv").is_file():
        worths, done = _of_run(folder, arguments.model)
    else:
        neither = "neither a run (dataset/videos.tsv) nor what `actionspan propose` writes"
        raise InputError(f"{folder}: {neither} (videos/*.json)")
    # 2. those that are left to do
    if arguments.annotations is not None:
        names = Names({worth.video: worth for worth in worths})
        reading = read_annotation_file(arguments.annotations, points=1.0)  # videos count alone
        drop_unsound(reading)
        report_left_out(reading)
        done = {names.find(record.video_id) or "" for record in reading.records}
    left = [worth for worth in worths if worth.video not in done]
    best = sorted(left, key=lambda worth: (-worth.bits_per_minute, worth.video))[: arguments.top]
    # 3. a table, or JSON
    if arguments.json:
        print(json.dumps([asdict(worth) for worth in best], indent=1))
        return
    if not left:
        hint = "" if arguments.annotations else "; --annotations FILE leaves out only its videos"
        raise InputError(f"{folder}: all of {counted(len(worths), 'video')} are annotated{hint}")
    print("bits/min  events  minutes  video")
    for worth in best:
        numbers = f"{worth.bits_per_minute:8.2f}  {worth.events:6}  {worth.seconds / 60:7.1f}"
        print(f"{numbers}  {worth.video}")


def worth_of(video: str, chances: Sequence[float], seconds: float) -> _Worth:
    """Return the worth of a video, given the probability that each event is right."""
    bits, minutes = sum(map(entropy, chances)), seconds / 60
    rate = bits / minutes if minutes else 0.0
    return _Worth(
        video=video, bits_per_minute=rate, bits=bits, events=len(chances), seconds=seconds
    )


def entropy(chance: float) -> float:
    """Return the entropy in bits of an answer that is yes with this chance, 0…1."""
    parts = (part for part in (chance, 1 - chance) if part > 0)
    return sum(-part * math.log2(part) for part in parts)


def _of_proposals(folder: Path) -> Iterator[_Worth]:
    """Yield the worth of each video that `actionspan propose` has done."""
    for path in sorted((folder / "videos").glob("*.json")):
        found = read_json(path)
        found = found if isinstance(found, dict) else {}
        if "motion" in (found.get("curves") or {}):
            raise InputError(f"{path}: untrained motion grouping (--model none) knows no chances")
        seconds = to_number(found.get("duration_seconds"))
        if seconds is None or not isinstance(found.get("events"), list):
            raise InputError(f"{path}: not what `actionspan propose` writes of a video")
        yield worth_of(path.stem, _chances(path, path.stem, found["events"]), seconds)


def _of_run(folder: Path, model: str) -> tuple[list[_Worth], set[str]]:
    """Return the worth of each video of a run, and the videos that it learned from or scored."""
    path = folder / "proposals" / model / "events.json"
    if not path.is_file():
        known = sorted(found.parent.name for found in folder.glob("proposals/*/events.json"))
        there = ", ".join(known) or "none"
        raise InputError(f"{path}: no such file; models with events here: {there}")
    videos = {video.video_id: video for video in read_videos(folder / "dataset" / "videos.tsv")}
    worths = []
    try:
        with path.open(encoding="utf-8") as file:
            for video_id, rows in members(file, "results"):
                if video_id in videos:
                    seconds = videos[video_id].duration_seconds
                    worths.append(worth_of(video_id, _chances(path, video_id, rows), seconds))
    except (KeyError, ValueError, RecursionError):
        raise InputError(f"{path}: not a list of events") from None
    return worths, {name for name, video in videos.items() if video.subset != "testing"}


def _chances(path: Path, video_id: str, rows: Any) -> list[float]:
    """Return the scores of a video's events, which must be chances."""
    chances = []
    for number, row in enumerate(rows if isinstance(rows, list) else [], start=1):
        chance = to_number(row.get("score")) if isinstance(row, dict) else None
        if chance is not None and "rank" in row:
            chance = 0.5  # nobody knows it
        if chance is None or not 0 <= chance <= 1:
            event = f"video {video_id!r}, event {number}"
            raise InputError(f"{path}: {event}: its score is not a chance from 0 to 1")
        chances.append(chance)
    return chances
