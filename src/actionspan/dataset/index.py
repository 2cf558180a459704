"""Check annotations against videos: videos.tsv, annotations.json, rejected.tsv."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from actionspan.annotations import tables
from actionspan.annotations.formats.rejections import Rejection, report, write_rejections
from actionspan.annotations.tables import Video
from actionspan.dataset import matching
from actionspan.dataset.matching import IndexSettings
from actionspan.dataset.sharding import scan_videos
from actionspan.errors import InputError, counted
from actionspan.settings import add_settings, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add = parser.add_argument
    shards = "shard tables of `dataset probe`; @FILE names a file that lists them, one per line;"
    shards += " without any, videos and durations are from the annotations"
    add("--shards", nargs="*", default=[], metavar="FILE", help=shards)
    _add_annotations(parser, "annotations; several files (such as both of THUMOS14) are joined")
    folder = "the folder of the videos, to name the files in it that were passed over"
    add("--folder", type=Path, help=folder)
    words, passed = ("FILE", "REASON"), "a file that was passed over, where the videos lie in no"
    add("--left-out", nargs=2, action="append", default=[], metavar=words, help=f"{passed} folder")
    name = "of the data set, for captions (default: by the folder or the annotations)"
    add("--name", help=name)
    add("--out", type=Path, required=True, help="folder of the three tables")
    rejected = "the table of rejected rows (default: rejected.tsv in that folder)"
    add("--rejected", dest="out_rejected", type=Path, metavar="FILE", help=rejected)
    add_settings(parser, IndexSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write the canonical tables."""
    settings = from_arguments(IndexSettings, arguments)
    table = arguments.out_rejected or arguments.out / "rejected.tsv"
    # 1. read everything, and check each row
    reading = matching.read_annotations(arguments.annotations, arguments.video_info, settings)
    probed = _read_shards(arguments.shards)
    if arguments.shards:
        index = matching.index_videos(probed, reading, settings)
    else:
        index = matching.index_annotations(reading, settings)
    # 2. the reasons first: they are needed most where nothing is left
    passed = scan_videos(arguments.folder)[1] if arguments.folder else {}
    passed |= dict(arguments.left_out)
    files = [Rejection(file, "", reason) for file, reason in passed.items()]
    index = replace(index, rejections=files + index.rejections)
    write_rejections(table, index.rejections)
    report(index.rejections, settings.on_bad_input, table)
    if not index.videos:
        raise InputError(f"no video is left of {len(probed) or len(reading.records)}; see {table}")
    if index.rejections and not index.annotated:
        videos = counted(len(index.videos), "video")
        raise InputError(f"no annotation is left for {videos}; see {table}")
    # 3. the data set
    tables.write_videos(arguments.out / "videos.tsv", index.videos, tables.VIDEO_COLUMNS)
    name = arguments.name or data_name(arguments.folder, arguments.annotations[0])
    tables.write_annotations(arguments.out / "annotations.json", index.annotations, name)
    print(f"dataset: {matching.describe(index)}", file=sys.stderr)


def _add_annotations(parser: argparse.ArgumentParser, help: str) -> None:
    """Add the flags of annotation files and of the table that completes them."""
    add = parser.add_argument
    add("--annotations", type=Path, nargs="+", required=True, metavar="FILE", help=help)
    info = "a table of videos (video, subset, seconds, numFrame, fps), facts that the annotations"
    info += " leave out, such as video_info_new.csv"
    add("--video-info", type=Path, metavar="FILE", help=info)


def data_name(folder: Path | None, annotations: Path) -> str:
    """Return a name of a data set: the last two parts of a path (the last is often `videos`)."""
    name = "/".join((folder or annotations).resolve().parts[-2:])
    return f"the videos of {name}" if folder else f"the data set of {name}"


def _read_shards(names: Sequence[str]) -> list[Video]:
    """Read shard tables; `@FILE` means the tables that FILE lists."""
    paths: list[str] = []
    for name in names:
        if name.startswith("@"):
            try:
                paths += filter(None, Path(name[1:]).read_text(encoding="utf-8").splitlines())
            except (OSError, UnicodeDecodeError):
                raise InputError(f"{name[1:]}: no readable list of shard tables") from None
        else:
            paths.append(name)
    return [video for path in paths for video in tables.read_videos(Path(path))]
