"""What the steps `misses` and `reliability` read: a method's proposals and a subset's truth."""

import argparse
from pathlib import Path

from actionspan.dataset.tables import Annotation, read_annotations
from actionspan.errors import InputError
from actionspan.evaluation.files import read_proposals
from actionspan.evaluation.rows import Floats


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Add the flags that both steps have."""
    parser.add_argument("--proposals", type=Path, required=True, help="ActivityNet result JSON")
    parser.add_argument("--annotations", type=Path, required=True, help="annotations.json")
    parser.add_argument("--subset", default="validation", help="default: validation")
    parser.add_argument("--method", required=True, help="the method's name, for titles")


def read_inputs(arguments: argparse.Namespace) -> tuple[list[Annotation], dict[str, Floats]]:
    """Read the videos of the subset and the proposals.

    Raises:
        InputError: A file is not readable, or the subset has no instance.
    """
    annotations = read_annotations(arguments.annotations)
    videos = [video for video in annotations if video.subset == arguments.subset]
    if not any(video.instances for video in videos):
        raise InputError(
            f"{arguments.annotations}: subset {arguments.subset!r} has no instance to find"
        )
    return videos, read_proposals(arguments.proposals)
