"""Videos to correct next, in a random order that stays the same.

No other order was better: after five videos, to have corrected first where events were the least
certain found no more (docs/benchmarks.md).
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from actionspan.annotations.formats.records import drop_unsound, report_left_out
from actionspan.annotations.formats.registry import read_annotation_file
from actionspan.annotations.formats.times import to_number
from actionspan.annotations.tables import read_videos
from actionspan.dataset.matching import Names
from actionspan.errors import InputError, counted
from actionspan.settings import at_least_one
from actionspan.storage.writing import digest, read_json


@dataclass(frozen=True, kw_only=True)
class _Left:
    """A video that may be left to correct."""

    video: str
    seconds: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    add = parser.add_argument
    results = "the folder of a run (results), or one that `actionspan propose` wrote"
    add("results", type=Path, metavar="RESULTS", help=results)
    named = "videos that these name are left out"
    named += " (default: in a run, those it was trained and scored on)"
    add("--annotations", type=Path, metavar="FILE", help=named)
    add("--top", type=int, default=10, metavar="N", help="how many videos (default: 10)")
    add("--json", action="store_true", help="print a JSON list")


def run(arguments: argparse.Namespace) -> None:
    """Print the videos."""
    # 1. all videos
    at_least_one("--top", arguments.top)
    folder, done = arguments.results, set()
    if (folder / "videos").is_dir():
        videos = list(_of_proposals(folder))
    elif (folder / "dataset" / "videos.tsv").is_file():
        table = read_videos(folder / "dataset" / "videos.tsv")
        videos = [_Left(video=one.video_id, seconds=one.duration_seconds) for one in table]
        done = {one.video_id for one in table if one.subset != "testing"}
    else:
        neither = "neither a run (dataset/videos.tsv) nor what `actionspan propose` writes"
        raise InputError(f"{folder}: {neither} (videos/*.json)")
    # 2. those that are left to do
    if arguments.annotations is not None:
        names = Names({one.video: one for one in videos})
        reading = read_annotation_file(arguments.annotations, points=1.0)  # videos count alone
        drop_unsound(reading)
        report_left_out(reading)
        done = {names.find(record.video_id) or "" for record in reading.records}
    left = [one for one in videos if one.video not in done]
    first = sorted(left, key=lambda one: digest(one.video))[: arguments.top]
    # 3. a table, or JSON
    if arguments.json:
        print(json.dumps([asdict(one) for one in first], indent=1))
        return
    if not left:
        hint = "" if arguments.annotations else "; --annotations FILE leaves out only its videos"
        raise InputError(f"{folder}: all of {counted(len(videos), 'video')} are annotated{hint}")
    print("minutes  video (in a random order, as no other was better)")
    for one in first:
        print(f"{one.seconds / 60:7.1f}  {one.video}")


def _of_proposals(folder: Path) -> Iterator[_Left]:
    """Yield each video that `actionspan propose` has done."""
    for path in sorted((folder / "videos").glob("*.json")):
        found = read_json(path)
        seconds = to_number(found.get("duration_seconds")) if isinstance(found, dict) else None
        if seconds is None:
            raise InputError(f"{path}: not what `actionspan propose` writes of a video")
        yield _Left(video=path.stem, seconds=seconds)
