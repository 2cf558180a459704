"""The input that a run lost: rejected.tsv, losses.tsv, and a line about both."""

import argparse
import sys
from pathlib import Path

from actionspan.annotations import tables
from actionspan.annotations.formats.rejections import Rejection, read_rejections, write_rejections
from actionspan.jobs.parts import rejected_videos
from actionspan.storage.writing import open_h5, read_tsv, write_tsv

COLUMNS = ("video_id", "stated_frames", "read_frames")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add = parser.add_argument
    add("--rejected", type=Path, required=True, help="what `dataset index` rejected")
    add("--videos", type=Path, required=True, help="dataset/videos.tsv")
    shards = "feature shards, which name the videos earlier steps could not read"
    add("--shards", type=Path, nargs="*", default=[], metavar="FILE", help=shards)
    add("--out", type=Path, required=True, help="folder of both tables")


def run(arguments: argparse.Namespace) -> None:
    """Write both tables."""
    rejections = read_rejections(arguments.rejected)
    listed = {video.video_id: video for video in tables.read_videos(arguments.videos)}
    short = []
    for shard in arguments.shards:
        with open_h5(shard) as file:
            for name, reason in rejected_videos(file).items():
                known = listed.get(name)
                # annotations of a set without video files have no path
                where = str(known.path) if known and known.path != Path() else name
                rejections.append(Rejection(where, "", reason.removeprefix(f"{where}: ")))
            for name, group in file.items():
                stated = int(group.attrs.get("stated_frames", 0))
                read = int(group.attrs.get("frame_count", 0))
                if read < stated:
                    short.append((name, stated, read))
    write_rejections(arguments.out / "rejected.tsv", rejections)
    write_tsv(arguments.out / "losses.tsv", COLUMNS, sorted(short))
    print(losses_line(arguments.out) or "nothing was lost", file=sys.stderr)


def losses_line(folder: Path) -> str:
    """Return a line about both tables of a folder, empty if nothing was lost."""
    rejected, short = folder / "rejected.tsv", folder / "losses.tsv"
    if not (rejected.is_file() and short.is_file()):
        return ""
    rows = read_tsv(rejected)
    files = sum(not row["row"] for row in rows)
    parts = []
    if rows:
        left_out = _counted(len(rows) - files, "annotation row")
        parts.append(f"{_counted(files, 'file')} and {left_out} left out ({rejected})")
    if videos := read_tsv(short):
        lost = sum(int(row["stated_frames"]) - int(row["read_frames"]) for row in videos)
        stated = sum(int(row["stated_frames"]) for row in videos)
        total = f"{_counted(stated, 'frame')} of {_counted(len(videos), 'video')}"
        parts.append(f"{lost} of {total} could not be read ({short})")
    return "lost of the input: " + "; ".join(parts) if parts else ""


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
