"""Search videos for segments that are like marked ones, or that words describe."""

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from actionspan.dataset.settings import add_points
from actionspan.errors import InputError, counted
from actionspan.settings import at_least_one

if TYPE_CHECKING:
    from actionspan.propose.proposed import Proposed
    from actionspan.propose.results import ResultFolder
    from actionspan.review.footage import Encoded


_MADE_BY = "find"  # results of another search are replaced


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add = parser.add_argument
    add("videos", type=Path, nargs="+", metavar="VIDEO", help="video files, or folders of them")
    like = (
        "marked segments, such as corrections.csv of a page or annotations in any form: those of "
        "each label are searched for by themselves"
    )
    add("--like", type=Path, required=True, metavar="FILE", help=like)
    add("--label", action="append", default=[], help="search for this label alone; may be repeated")
    add_points(parser)
    folder = "folder for the page index.html and the tables (default: found)"
    add("-o", "--out", type=Path, default=Path("found"), help=folder)
    kept = "folder where the features of videos are kept (default: features, in --out)"
    add("--features", type=Path, metavar="DIR", help=kept)
    most = "at most N events of all videos, the most similar ones (default: 50)"
    add("--top", type=int, default=50, metavar="N", help=most)
    add("--no-page", action="store_true", help="do not write index.html, the page to look at")
    copies = "do not copy videos that browsers cannot play; by default the page plays a copy"
    add("--no-copies", action="store_true", help=copies)
    add("-q", "--quiet", action="store_true", help="print errors only")
    add("--threads", type=int, default=1, help="cores of the encoders (default: 1)")


def run(arguments: argparse.Namespace) -> int:
    """Encode the videos, search them, and write what is like the examples."""
    at_least_one("--top", arguments.top)
    at_least_one("--threads", arguments.threads)
    from actionspan import __version__
    from actionspan.dataset.completing import Truth
    from actionspan.dataset.video_facts import file_sha256
    from actionspan.files.storage import digest
    from actionspan.find.examples import Footage, find_like, marked
    from actionspan.find.listing import listed
    from actionspan.propose.command import named_videos
    from actionspan.propose.results import ResultFolder

    videos, passed = named_videos(arguments.videos)
    for path, reason in passed.items():
        _say(f"{path}: {reason}")
    truth = Truth(arguments.like, videos, arguments.points)
    encoded, broken = _encoded(videos, arguments)
    if not encoded:
        raise InputError(f"nothing to search: {counted(len(videos), 'video')} cannot be read")
    examples = {
        one.video.video_id: truth.within(one.video.video_id, one.video.duration_seconds)
        for one in encoded
    }
    by_label = marked(examples, arguments.label)
    if not by_label:
        which = f" of the label {', '.join(arguments.label)}" * bool(arguments.label)
        raise InputError(f"{arguments.like}: marks no segment{which} in these videos")
    made_by = digest(__version__, file_sha256(arguments.like), arguments.label, arguments.points)
    folder = ResultFolder(arguments.out, f"{_MADE_BY} {made_by}", replaces=_MADE_BY)
    footage = Footage(encoded)
    found = [find_like(footage, own) for own in by_label.values()]
    names = [one.video.video_id for one in encoded]
    shown = listed(
        {name: [each[name] for each in found] for name in names},
        list(by_label),
        {one.video.video_id: one.video.duration_seconds for one in encoded},
        {one.video.video_id: one.motion() for one in encoded},
        arguments.top,
    )
    _write(folder, videos, shown, arguments)
    if not arguments.quiet:
        events = sum(len(each.events) for each in shown.values() if each.events is not None)
        marks = sum(len(own) for each in by_label.values() for own in each.values())
        like = f"{counted(events, 'segment')} like {counted(marks, 'marked one')}"
        line = f"{like}, in {counted(len(shown), 'video')}"
        print(f"{arguments.out}: {line}" + f"; open {folder.page}" * (not arguments.no_page))
    return 1 if broken or passed else 0


def _encoded(
    videos: Mapping[str, Path], arguments: argparse.Namespace
) -> "tuple[list[Encoded], int]":
    """Return the videos with their features, and how many cannot be read."""
    from actionspan.review.footage import encode
    from actionspan.running.shards import ShardWork

    encoded, broken = [], 0
    for path in videos.values():
        how = ShardWork(threads=arguments.threads)
        one = encode(path, arguments.features or arguments.out / "features", how)
        if one.video.error:
            _say(f"{path}: {one.video.error}")
            broken += 1
        else:
            encoded.append(one)
    return encoded, broken


def _write(
    folder: "ResultFolder",
    videos: Mapping[str, Path],
    found: "Mapping[str, Proposed]",
    arguments: argparse.Namespace,
) -> None:
    """Write the tables and the page, with copies of what browsers do not play."""
    from actionspan.propose.page import write_result_page
    from actionspan.propose.results import Shown, lacks_copy, make_copy, result_of, source_of

    for name, proposed in found.items():
        path = videos[name]
        result = result_of(proposed, path, folder.model, source_of(path))
        folder.put(replace(result, shown=folder.model))  # there are no pictures beside it
        copies = not (arguments.no_copies or arguments.no_page)
        if copies and result.events and lacks_copy(folder.folder, result, path):
            make_copy(folder.folder, path)
    folder.write_tables(Shown())
    if not arguments.no_page:
        write_result_page(folder, Shown(), videos, {}, None)


def _say(line: str) -> None:
    print(line, file=sys.stderr)
