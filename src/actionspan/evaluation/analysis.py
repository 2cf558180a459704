"""What `misses`, `reliability` and `reader` share: flags, and reading what they judge."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from numpy.typing import ArrayLike

from actionspan.dataset.tables import Annotation, read_annotations
from actionspan.errors import InputError
from actionspan.evaluation.files import read_proposals

Judged = TypeVar("Judged")


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `misses` and `reliability`."""
    parser.add_argument("--proposals", type=Path, required=True, help="ActivityNet result JSON")
    parser.add_argument("--annotations", type=Path, required=True, help="annotations.json")
    parser.add_argument("--subset", default="validation", help="default: validation")
    parser.add_argument("--method", required=True, help="the method's name, for titles")
    parser.add_argument("--out-markdown", type=Path, required=True, help="a page to read")
    parser.add_argument("--out-figure", type=Path, required=True, help=".svg or .png")


def judge_inputs(
    arguments: argparse.Namespace,
    judge: Callable[[Sequence[Annotation], Mapping[str, ArrayLike]], Judged],
) -> Judged:
    """Judge the proposals by the videos of the subset.

    Raises:
        InputError: A file is not readable or has a bad row, or the subset has no instance.
    """
    videos = read_subset(arguments.annotations, arguments.subset)
    proposals = read_proposals(arguments.proposals)
    try:
        return judge(videos, proposals)
    except ValueError as error:
        raise InputError(f"{arguments.proposals}, {arguments.annotations}: {error}") from None


def read_subset(annotations: Path, subset: str) -> list[Annotation]:
    """Return the videos of a subset.

    Raises:
        InputError: The file is not readable, or the subset has no instance.
    """
    videos = [video for video in read_annotations(annotations) if video.subset == subset]
    if not any(video.instances for video in videos):
        raise InputError(f"{annotations}: subset {subset!r} has no instance to find")
    return videos
