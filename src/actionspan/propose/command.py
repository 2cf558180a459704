"""Proposals for videos, without the workflow."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from actionspan.errors import InputError
from actionspan.running.progress import progress
from actionspan.settings import at_least_one

if TYPE_CHECKING:
    from actionspan.propose.motion import MotionProposer
    from actionspan.propose.proposer import Proposer

_NO_MODEL = (
    "--model is needed: a trained model such as results/proposals/span (`make demo` makes one, and "
    "docs/tutorial.md says how to train on your videos), or none for untrained motion grouping"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument("videos", type=Path, nargs="+", metavar="VIDEO", help="video files")
    parser.add_argument(
        "--model", help="model.pt or the folder that holds it; none: untrained motion grouping"
    )
    results = (
        "proposals and events (.json and .csv) and each video's .vtt and .svg (default: proposals)"
    )
    parser.add_argument("--out", type=Path, default=Path("proposals"), help=f"folder for {results}")
    parser.add_argument(
        "--top",
        type=int,
        metavar="N",
        help="at most N distinct events of each video in events.json, events.csv and its chapters",
    )
    shown = "annotations in any form; the figures then show them"
    parser.add_argument("--annotations", type=Path, help=shown)
    parser.add_argument("--threads", type=int, default=1, help="cores of the encoders (default: 1)")


def run(arguments: argparse.Namespace) -> int:
    """Propose for each video; broken videos are reported and left out."""
    from actionspan.dataset.tables import read_instances
    from actionspan.evaluation.timeline_figure import draw_timeline
    from actionspan.proposals.settings import ChapterSettings
    from actionspan.proposals.webvtt import write_chapters
    from actionspan.proposals.writing import Row, write_proposals

    if arguments.model is None:
        raise InputError(_NO_MODEL)
    if arguments.top is not None:
        at_least_one("--top", arguments.top)
    proposer = _proposer(arguments.model, arguments.threads)
    truth = dict(read_instances(arguments.annotations)) if arguments.annotations else {}
    results: dict[str, Sequence[Row]] = {}
    events: dict[str, Sequence[Row]] = {}
    broken, labelled = 0, False
    for path in progress(arguments.videos, "proposing", len(arguments.videos)):
        try:
            if path.stem in results:
                raise InputError("another video has the same name; rename one")
            proposed = proposer.propose(path)
        except InputError as error:
            broken += 1
            message = str(error)
            print(message if str(path) in message else f"{path}: {message}", file=sys.stderr)
            continue
        results[path.stem] = proposed.rows()
        labelled = bool(proposed.classes)
        listed = proposed.event_rows()[: arguments.top]
        events[path.stem] = listed
        chapters = (
            ChapterSettings() if arguments.top is None else ChapterSettings(chapters=arguments.top)
        )
        write_chapters(arguments.out / f"{path.stem}.vtt", listed, chapters)
        draw_timeline(
            arguments.out / f"{path.stem}.svg",
            path.stem,
            proposed.duration_seconds,
            proposed.probabilities,
            truth.get(path.stem, ()),
            proposed.segments,
            proposed.scores,
            proposed.motion,
        )
    if not results:
        raise InputError(f"no proposals: not one of the {broken} videos could be read")
    tables = [arguments.out / f"proposals.{suffix}" for suffix in ("json", "csv")]
    write_proposals(results.items(), *tables, labelled=labelled)
    shown = [arguments.out / f"events.{suffix}" for suffix in ("json", "csv")]
    write_proposals(events.items(), *shown, labelled=labelled)
    print(f"{arguments.out}: proposals of {len(results)} videos, {broken} could not be read")
    return 1 if broken else 0


def _proposer(model: str, threads: int) -> "Proposer | MotionProposer":
    if model == "none":
        from actionspan.propose.motion import MotionProposer

        return MotionProposer()
    import torch

    from actionspan.propose.proposer import Proposer
    from actionspan.running.allocator import keep_freed_memory

    keep_freed_memory()
    torch.set_num_threads(at_least_one("--threads", threads))
    return Proposer(model)
