"""Search videos for segments that are like marked ones, or that words describe."""

import argparse
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from actionspan.dataset.settings import add_reading, how_read
from actionspan.errors import InputError, counted
from actionspan.jobs.shards import add_jobs, add_zones
from actionspan.settings import at_least_one

if TYPE_CHECKING:
    from actionspan.find.examples import Similar
    from actionspan.propose.labels import WordModel
    from actionspan.propose.proposed import Proposed
    from actionspan.propose.result_folder import ResultFolder
    from actionspan.review.footage import Encoded

_MADE_BY = "find"  # results of another search are replaced


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add = parser.add_argument
    what = "a text to search for (with --encoder), then video files, or folders of them"
    add("videos", nargs="+", metavar="[WORDS] VIDEO", help=what)
    like = (
        "marked segments instead of words, such as corrections.csv of a page or annotations in "
        "any form: the segments of each label are searched for by themselves"
    )
    add("--like", type=Path, metavar="FILE", help=like)
    add("--label", action="append", default=[], help="search for this label alone; may be repeated")
    add_reading(parser)
    encoder = "model of images (or clips) and words: hf:ORGANISATION/MODEL or a folder"
    add("--encoder", help=encoder)
    also = "another wording of the same; may be repeated"
    add("--also", action="append", default=[], metavar="WORDS", help=also)
    nothing = "wording of the background, replaces the usual ones; may be repeated"
    add("--background", action="append", default=[], metavar="WORDS", help=nothing)
    folder = "folder for the page index.html and the tables (default: found)"
    add("-o", "--out", type=Path, default=Path("found"), help=folder)
    kept = "folder where the features of videos are kept (default: features, in --out)"
    add("--features", type=Path, metavar="DIR", help=kept)
    index = (
        "search by the file index.h5 next to the features, made if it is missing or of others: for "
        "archives; shows the videos of the listed events alone (with --like)"
    )
    add("--index", action="store_true", help=index)
    most = "at most N events of all videos, the most similar ones (default: 50)"
    add("--top", type=int, default=50, metavar="N", help=most)
    add("--no-page", action="store_true", help="do not write index.html, the page to look at")
    copies = "do not copy videos that browsers cannot play; by default the page plays a copy"
    add("--no-copies", action="store_true", help=copies)
    add("-q", "--quiet", action="store_true", help="print errors only")
    add("--threads", type=int, default=1, help="cores of the encoders (default: 1)")
    add_zones(parser)
    add_jobs(parser)


def run(arguments: argparse.Namespace) -> int:
    """Encode the videos, search them, and write the results."""
    at_least_one("--top", arguments.top)
    at_least_one("--threads", arguments.threads)
    words = None if arguments.like else arguments.videos.pop(0)
    _check(arguments, words)
    from actionspan.find.listing import NOTHING, hopeful, listed
    from actionspan.propose.command import named_videos
    from actionspan.propose.result_folder import ResultFolder
    from actionspan.review.footage import encode_readable, encoding
    from actionspan.video.zones import read_zones

    # 1. the videos and the query
    cameras = read_zones(arguments.zones)
    videos, passed = named_videos(map(Path, arguments.videos))
    kept = arguments.features or arguments.out / "features"
    query = (
        _examples(videos, arguments, kept) if words is None else _words(words, videos, arguments)
    )
    # 2. the features; the folder is checked first, as encoding may take long
    folder = ResultFolder(arguments.out, f"{_MADE_BY} {query.made_by}", replaces=_MADE_BY)
    if query.model is not None:
        kept = kept / query.model.digest[:16]  # next to other encoders' features
    settings = query.model.settings if query.model else None
    how = encoding(arguments, len(videos)), settings, cameras
    encoded = encode_readable(videos.values(), kept, *how)
    if not encoded:
        raise InputError(f"nothing to search: {counted(len(videos), 'video')} cannot be read")
    # 3. the segments
    by_label = query.find(encoded)
    by_name = {one.video.video_id: one for one in encoded}
    names = hopeful(by_label, arguments.top) if arguments.index else list(by_name)
    shown = listed(
        {name: [each.get(name, NOTHING) for each in by_label.values()] for name in names},
        list(by_label),
        {name: by_name[name].video.duration_seconds for name in names},
        arguments.top,
    )
    shown = {
        name: replace(each, motion=by_name[name].motion())
        for name, each in shown.items()
        if not arguments.index or (each.events is not None and len(each.events))
    }
    _write(folder, videos, shown, arguments)
    if not arguments.quiet:
        events = sum(len(each.events) for each in shown.values() if each.events is not None)
        line = (
            f"{counted(events, 'segment')} like {query.like}, in {counted(len(encoded), 'video')}"
        )
        print(f"{arguments.out}: {line}" + f"; open {folder.page}" * (not arguments.no_page))
    return 1 if passed or len(encoded) < len(videos) else 0


def _check(arguments: argparse.Namespace, words: str | None) -> None:
    if words is None:
        if arguments.encoder or arguments.also or arguments.background:
            raise InputError("--encoder, --also, --background: of a search by words, not --like")
        return
    if os.path.exists(words):  # noqa: PTH110, False of a long text
        raise InputError(f"{words}: a file or folder; put the search text first, or --like FILE")
    if not arguments.videos:
        raise InputError(f"{words!r} in which videos? name files or folders")
    if arguments.encoder is None:
        raise InputError("--encoder: name a model of images and words (docs/encoders.md)")
    for flag in ("label", "index"):
        if getattr(arguments, flag):
            raise InputError(f"--{flag}: of a search by --like")


class _Query(NamedTuple):
    """The examples or words of a search."""

    find: "Callable[[list[Encoded]], dict[str, dict[str, Similar]]]"  # by label, then by video
    like: str  # a description of the segments
    made_by: str
    model: "WordModel | None" = None  # its features are searched; None: the features of `learn`


def _examples(videos: Mapping[str, Path], arguments: argparse.Namespace, kept: Path) -> _Query:
    from actionspan import __version__
    from actionspan.dataset.completing import Truth
    from actionspan.find.examples import Footage, find_like, marked
    from actionspan.find.index import index_of
    from actionspan.storage.writing import digest

    truth = Truth(arguments.like, videos, **how_read(arguments))
    known = {name: own for name, own in truth.instances.items() if name in videos}
    marks = sum(
        len(own) for each in marked(known, arguments.label).values() for own in each.values()
    )
    if not marks:
        which = f" of the label {', '.join(arguments.label)}" * bool(arguments.label)
        raise InputError(f"{arguments.like}: marks no segment{which} in these videos")

    def find(encoded: "list[Encoded]") -> "dict[str, dict[str, Similar]]":
        lengths = {one.video.video_id: one.video.duration_seconds for one in encoded}
        inside = {name: truth.within(name, seconds) for name, seconds in lengths.items()}
        by_label = marked(inside, arguments.label)
        if not by_label:
            raise InputError(f"{arguments.like}: marks no segment inside a video that can be read")
        if arguments.index:
            index = index_of(encoded, kept / "index.h5")
            return {label: index.find_like(own) for label, own in by_label.items()}
        footage = Footage(encoded)
        return {label: find_like(footage, own) for label, own in by_label.items()}

    made_of = (
        *["index"] * arguments.index,
        known,
        arguments.label,
        sorted(map(str, videos.values())),
    )
    return _Query(find, counted(marks, "marked one"), digest(__version__, *made_of))


def _words(words: str, videos: Mapping[str, Path], arguments: argparse.Namespace) -> _Query:
    from actionspan import __version__
    from actionspan.find.words import BACKGROUND, even_rows, find_words
    from actionspan.propose.labels import WordModel, worded
    from actionspan.storage.writing import digest

    model, every = WordModel(arguments.encoder), worded([words, *arguments.also])
    wanted = model.texts(every).vectors
    background = model.texts(arguments.background or BACKGROUND).vectors

    def find(encoded: "list[Encoded]") -> "dict[str, dict[str, Similar]]":
        rows = ((one.video.video_id, *even_rows(one, model)) for one in encoded)
        return {words: find_words(rows, wanted, background)}

    made_of = (
        model.settings,
        model.made_by,
        every,
        arguments.background,
        sorted(map(str, videos.values())),
    )
    return _Query(find, repr(words), digest(__version__, *made_of), model)


def _write(
    folder: "ResultFolder",
    videos: Mapping[str, Path],
    found: "Mapping[str, Proposed]",
    arguments: argparse.Namespace,
) -> None:
    """Write the tables and the page, with copies of what browsers do not play."""
    from actionspan.propose.page import write_result_page
    from actionspan.propose.result_folder import lacks_copy, make_copy, write_tables
    from actionspan.propose.results import Shown, result_of, source_of

    for name, proposed in found.items():
        path = videos[name]
        result = result_of(proposed, path, folder.model, source_of(path))
        folder.put(replace(result, shown=folder.model))  # it has no images
        copies = not (arguments.no_copies or arguments.no_page)
        if copies and result.events and lacks_copy(folder.folder, result, path):
            make_copy(folder.folder, path)
    write_tables(folder.folder, folder.results, Shown())
    if not arguments.no_page:
        write_result_page(folder, Shown(), videos, {}, None)
