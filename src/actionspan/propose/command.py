"""Proposals for videos, without the workflow."""

import argparse
import hashlib
import json
import math
import signal
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from glob import has_magic, iglob
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from actionspan import __version__
from actionspan.annotations.names import VIDEO_SUFFIXES
from actionspan.dataset.joining import add_joining, joined
from actionspan.dataset.settings import add_reading, how_read
from actionspan.dataset.sharding import find_videos, scan_videos
from actionspan.errors import InputError, counted
from actionspan.jobs.shards import add_jobs, add_zones, videos_at_once
from actionspan.settings import at_least_one
from actionspan.storage.inputs import keep

if TYPE_CHECKING:
    from actionspan.propose.labels import Labels
    from actionspan.propose.results import Shown

_DEMO_NOTE = (
    "without --model: the one that comes with actionspan, which has seen rendered videos alone "
    "(docs/demo_model.md); `actionspan review` learns from what you correct"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add = parser.add_argument
    add("videos", type=Path, nargs="+", metavar="VIDEO", help="video files, or folders of them")
    model = (
        "model.safetensors or the folder that holds it, or hf:ORG/NAME[@REVISION]; demo (default): "
        "the model that comes with actionspan; none: untrained motion grouping"
    )
    add("--model", help=model)
    folder = (
        "folder for the page index.html, proposals and events (.json and .csv), and each video's "
        ".vtt, .svg and .jpg (default: proposals)"
    )
    add("-o", "--out", type=Path, default=Path("proposals"), help=folder)
    redo = "redo finished videos; by default, a second call continues after the last one"
    add("--overwrite", action="store_true", help=redo)
    most = "at most N distinct events of each video in events.json, events.csv and its chapters"
    add("--top", type=int, metavar="N", help=most)
    least = "leave out proposals and events with a lower score; LABEL=SCORE: events of a label"
    add("--min-score", type=_least, metavar="SCORE", action="append", default=[], help=least)
    only = "leave out shorter proposals and events"
    add("--shortest", type=_seconds, default=0.0, metavar="SECONDS", help=only)
    only = "leave out longer proposals and events"
    add("--longest", type=_seconds, default=math.inf, metavar="SECONDS", help=only)
    part = "list only events in this part of each video, in seconds"
    every = (0.0, math.inf)
    add("--between", type=_seconds, nargs=2, default=every, metavar=("START", "END"), help=part)
    truth = "annotations in any form; the figures then show them"
    add("--annotations", type=Path, help=truth)
    add_reading(parser)
    add_joining(parser)
    add_zones(parser)
    lines = "print a line of JSON with its events for each video, as soon as it is done"
    add("--json", action="store_true", help=lines)
    add("--sound", action="store_true", help="show loudness and its changes in the page, too")
    add("--no-page", action="store_true", help="do not write index.html, the page to look at")
    copies = "do not copy videos that browsers cannot play; by default the page plays a copy"
    add("--no-copies", action="store_true", help=copies)
    add("-q", "--quiet", action="store_true", help="print errors only")
    group = parser.add_argument_group("how it is computed")
    add = group.add_argument
    add("--threads", type=int, default=1, help="cores of the encoders (default: 1)")
    add_jobs(group)
    device = "where the encoders run (default: as when they were trained)"
    add("--device", choices=("auto", "cpu", "cuda"), help=device)
    encoder = "the network of timm or transformers that the model sees by (docs/encoders.md)"
    add("--encoder", action="append", default=[], help=f"{encoder}; may be repeated")
    words = 'labels of events instead of the model\'s, such as "fall, sit down" (with --labels-by)'
    add("--labels", metavar="WORDS", help=words)
    by = "model of images (or clips) and words, as for `actionspan find` (docs/encoders.md)"
    add("--labels-by", metavar="MODEL", help=by)


def run(arguments: argparse.Namespace) -> int:
    """Propose for each video; broken videos are reported and left out."""
    from actionspan.proposals.bundle_files import UNTRAINED, bundle_path, included_model

    # 1. the model and the videos
    shown = _shown(arguments)
    at_least_one("--threads", arguments.threads)
    signal.signal(signal.SIGTERM, _end)
    model: Path | None = included_model()  # whatever is called demo here
    if arguments.model is not None:
        model = None if arguments.model == UNTRAINED else bundle_path(Path(arguments.model))
    videos, broken = named_videos(arguments.videos)
    if not videos:
        raise InputError(_nothing(broken))
    if arguments.model is None and not arguments.quiet:
        _print_error(_DEMO_NOTE)
    from actionspan.propose.result_folder import ResultFolder, write_tables
    from actionspan.propose.working import Loading, each_video
    from actionspan.storage.writing import digest

    videos, places, damaged = joined(arguments, videos, arguments.out)
    broken += damaged
    jobs = videos_at_once(arguments.jobs, len(videos), arguments.threads)
    cameras: Mapping[str, Any] = {}
    if arguments.zones:
        from actionspan.video.zones import read_zones

        cameras = read_zones(arguments.zones)
    truth = None
    if arguments.annotations:
        from actionspan.dataset.completing import Truth

        truth = Truth(arguments.annotations, videos, **how_read(arguments))
    # 2. the folder
    labels, named = _labels(arguments)
    made_by = digest(__version__, _sha256(model) if model else UNTRAINED, *named)
    again: Any = {"overwrite": arguments.overwrite, "cameras": cameras}
    folder = ResultFolder(arguments.out, made_by, **again)
    # 3. the results; finished videos are written whatever ends the call
    how_made = (arguments.device, arguments.encoder, labels, arguments.sound, cameras)
    loading = Loading(model, arguments.threads, *how_made)
    copies = not (arguments.no_copies or arguments.no_page)
    how = {"copies": copies, "quiet": arguments.quiet, "jobs": jobs}
    count: Counter[str] = Counter()
    try:
        for made in each_video(folder, videos, truth, shown, loading, **how):
            if made.reason:
                broken += 1
                _print_error(made.reason)
                continue
            count["done"] += 1
            count["before"] += made.before
            count["without events"] += not made.summary["events"]
            _print_summary(made.summary, arguments)
    finally:
        if count["done"]:
            count["in folder"] = write_tables(folder.folder, folder.results, shown, places)
            if not arguments.no_page:
                from actionspan.propose.page import write_result_page

                known = truth.instances if truth else {}
                write_result_page(folder, shown, videos, known, model, places)
        else:
            folder.remove_if_empty()
    # 4. the last line
    if not count["done"]:
        raise InputError(_nothing(broken))
    if not arguments.quiet:
        counts = [f"proposals of {counted(count['done'], 'video')}"]
        counts += [f"{count['before']} done before"] * (count["before"] > 0)
        counts += [f"{broken} could not be read"] * (broken > 0)
        counts += [f"{count['in folder']} in the folder"] * (count["in folder"] > count["done"])
        counts += [f"no event in {count['without events']}"] * (count["without events"] > 0)
        line = f"{arguments.out}: {', '.join(counts)}"
        line += f"; open {folder.page}" * (not arguments.no_page)
        print(line, file=sys.stderr if arguments.json else sys.stdout)
    return 1 if broken else 0


def _shown(arguments: argparse.Namespace) -> "Shown":
    """Return the rows to list.

    Raises:
        InputError: The limits leave nothing.
    """
    from actionspan.propose.results import Shown

    if arguments.top is not None:
        at_least_one("--top", arguments.top)
    if arguments.shortest > arguments.longest:
        raise InputError(f"--shortest {arguments.shortest:g}: must be at most --longest")
    start, end = arguments.between
    if start >= end:
        raise InputError(f"--between {start:g}: must be before its end")
    return Shown(
        top=arguments.top,
        minimum=dict(arguments.min_score),
        shortest=arguments.shortest,
        longest=arguments.longest,
        between=(start, end),
    )


def _labels(arguments: argparse.Namespace) -> "tuple[Labels | None, list[str]]":
    """Return the labels that events get by words, and strings that identify them."""
    if arguments.labels is None and arguments.labels_by is None:
        return None, []
    from actionspan.propose.labels import WordModel, labels_of

    labels = labels_of(arguments.labels, arguments.labels_by)
    return labels, [*labels.names, WordModel(labels.model).made_by]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _least(word: str) -> tuple[str, float]:
    """Return the label, empty for all others, and the score of a word such as walk=0.4."""
    label, _, score = word.rpartition("=")
    try:
        return label, float(score)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{word}: a score, or LABEL=SCORE") from None


def _seconds(word: str) -> float:
    try:
        if 0 <= (seconds := float(word)) < math.inf:
            return seconds
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{word}: seconds, 0 or more")


def _end(*_: object) -> NoReturn:
    sys.exit(128 + signal.SIGTERM)


def _print_summary(summary: Mapping[str, Any], arguments: argparse.Namespace) -> None:
    if round(summary["still"], 2) and not arguments.quiet:
        _print_error(f"{summary['video']}: still for {summary['still']:.0%} of its time")
    if arguments.json:
        print(json.dumps(summary), flush=True)


def _nothing(broken: int) -> str:
    which = "the video" if broken == 1 else f"not one of {counted(broken, 'video')}"
    return f"no proposals: {which} could {'not ' * (broken == 1)}be read"


def _print_error(line: str) -> None:
    print(line, file=sys.stderr)


def named_videos(words: Iterable[Path]) -> tuple[dict[str, Path], int]:
    """Return the videos that `words` name, by id and in order, and the number of those left out.

    A folder means its video files, recognized by their suffix; sub-folders are not searched. A
    pattern that the shell did not expand, such as `"*.mp4"`, is expanded here. Of videos with the
    same id, the name without its suffix, the first counts. Standard error has a line for each
    video that is left out.

    Raises:
        InputError: A folder holds no video or cannot be read, or no file matches a pattern.
    """
    videos: dict[str, Path] = {}
    passed: dict[str, str] = {}
    for word in words:
        for path in _expanded(word, passed):
            if not path.exists():
                passed[str(path)] = "no such file"
            elif videos.setdefault(path.stem, path) != path:
                passed[str(path)] = f"{videos[path.stem]} has the same name; rename one"
    for name, reason in passed.items():
        _print_error(f"{name}: {reason}")
    return videos, len(passed)


def _expanded(word: Path, passed: dict[str, str]) -> Iterator[Path]:
    if word.is_dir():
        found = find_videos(word)
        passed |= scan_videos(word)[1]
        if not found:
            suffixes = " ".join(sorted(VIDEO_SUFFIXES))
            raise InputError(f"{word}: no video here: no file ends with one of {suffixes}")
        yield from found.values()
    elif has_magic(str(word)) and not word.exists():
        matches = sorted(map(Path, iglob(str(word), recursive=True)))  # noqa: PTH207, of any root
        if not matches:
            raise InputError(f"{word}: no file matches")
        keep(matches)
        yield from (match for match in matches if not match.is_dir())
    else:
        yield word
