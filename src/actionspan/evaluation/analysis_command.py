"""`actionspan evaluation misses`, `reliability` and `worst`: a closer look at one method."""

import argparse
from pathlib import Path
from typing import Any

from actionspan.dataset.tables import Annotation, read_annotations
from actionspan.errors import InputError
from actionspan.evaluation.files import read_proposals
from actionspan.evaluation.rows import Floats
from actionspan.files.storage import atomic_path


def add_parsers(steps: "argparse._SubParsersAction[Any]") -> None:
    """Add these sub-commands to those of `actionspan evaluation`."""
    step = steps.add_parser("misses", help="which instances one method misses")
    _add_inputs(step)
    step.add_argument("--out-table", type=Path, required=True, help="counts by bins")
    step.add_argument("--out-instances", type=Path, required=True, help="a row an instance")
    step.add_argument("--out-markdown", type=Path, required=True, help="a page to read")
    step.add_argument("--out-figure", type=Path, required=True, help=".svg or .png")
    step.set_defaults(run=run_misses)

    step = steps.add_parser("reliability", help="what the scores of one method mean")
    _add_inputs(step)
    step.add_argument("--out-table", type=Path, required=True, help="quality by bins of scores")
    step.add_argument("--out-markdown", type=Path, required=True, help="a page to read")
    step.add_argument("--out-figure", type=Path, required=True, help=".svg or .png")
    step.set_defaults(run=run_reliability)

    step = steps.add_parser("worst", help="the videos in which one method finds least")
    step.add_argument("--videos", type=Path, required=True, help="scores by video, videos/*.tsv")
    step.add_argument("--method", required=True, help="the method's name, for the title")
    step.add_argument("--timelines", help="folder of its timelines (default: it has none)")
    step.add_argument("--out-markdown", type=Path, required=True, help="a page to read")
    step.set_defaults(run=run_worst)


def _add_inputs(step: argparse.ArgumentParser) -> None:
    step.add_argument("--proposals", type=Path, required=True, help="ActivityNet result JSON")
    step.add_argument("--annotations", type=Path, required=True, help="annotations.json")
    step.add_argument("--subset", default="validation", help="default: validation")
    step.add_argument("--method", required=True, help="the method's name, for titles")


def _read_inputs(arguments: argparse.Namespace) -> tuple[list[Annotation], dict[str, Floats]]:
    """Read the videos of the subset and the proposals.

    Raises:
        InputError: A file is not readable, or the subset has no instance.
    """
    known = read_annotations(arguments.annotations)
    videos = [video for video in known if video.subset == arguments.subset]
    if not any(video.instances for video in videos):
        raise InputError(
            f"{arguments.annotations}: subset {arguments.subset!r} has no instance to find"
        )
    return videos, read_proposals(arguments.proposals)


def run_misses(arguments: argparse.Namespace) -> int:
    """Write which instances are missed, as two tables, a page and a figure."""
    from actionspan.evaluation.misses_report import write_reports
    from actionspan.evaluation.outcomes import instance_outcomes

    videos, proposals = _read_inputs(arguments)
    try:
        outcomes = instance_outcomes(videos, proposals)
    except ValueError as error:
        raise InputError(f"{arguments.proposals}, {arguments.annotations}: {error}") from None
    write_reports(
        outcomes,
        method=arguments.method,
        subset=arguments.subset,
        table=arguments.out_table,
        instances=arguments.out_instances,
        markdown=arguments.out_markdown,
        figure=arguments.out_figure,
    )
    return 0


def run_reliability(arguments: argparse.Namespace) -> int:
    """Write how good the proposals of each score are, as a table, a page and a figure."""
    from actionspan.evaluation.reliability_report import write_reports
    from actionspan.evaluation.score_quality import scored_proposals

    videos, proposals = _read_inputs(arguments)
    try:
        scored = scored_proposals(videos, proposals)
    except ValueError as error:
        raise InputError(f"{arguments.proposals}, {arguments.annotations}: {error}") from None
    write_reports(
        scored,
        method=arguments.method,
        subset=arguments.subset,
        table=arguments.out_table,
        markdown=arguments.out_markdown,
        figure=arguments.out_figure,
    )
    return 0


def run_worst(arguments: argparse.Namespace) -> int:
    """Write the page of the videos in which a method finds least."""
    from actionspan.evaluation.worst_videos import read_videos, worst_markdown

    page = worst_markdown(read_videos(arguments.videos), arguments.method, arguments.timelines)
    with atomic_path(arguments.out_markdown) as partial:
        partial.write_text(page, encoding="utf-8")
    return 0
