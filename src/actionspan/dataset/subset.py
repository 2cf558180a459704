"""The videos of a subset; an error, before videos are decoded, if nothing happens in them."""

import argparse
from collections import Counter
from pathlib import Path

from actionspan.annotations.formats.records import SUBSETS
from actionspan.annotations.tables import read_annotations
from actionspan.errors import InputError
from actionspan.storage.writing import write_tsv

COLUMNS = ("video_id", "duration_seconds", "instances")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--annotations", type=Path, required=True, help="dataset/annotations.json")
    parser.add_argument("--subset", required=True, choices=SUBSETS, help="the subset")
    parser.add_argument("--out", type=Path, required=True, help="the table to write")


def run(arguments: argparse.Namespace) -> None:
    """Write the table."""
    known, subset = read_annotations(arguments.annotations), arguments.subset
    chosen = [video for video in known if video.subset == subset]
    if not any(video.instances for video in chosen):
        counts = Counter(video.subset for video in known if video.instances)
        there = ", ".join(f"{counts[name]} {name}" for name in SUBSETS)
        raise InputError(
            f"{arguments.annotations}: no {subset} video has an instance ({there} videos have); "
            f"{_cure(subset, counts.total())}"
        )
    rows = [(video.video_id, video.duration_seconds, len(video.instances)) for video in chosen]
    write_tsv(arguments.out, COLUMNS, rows)


def _cure(subset: str, annotated: int) -> str:
    if annotated < 2:
        return "annotate at least two videos: one to learn from and one to score"
    named = f"name {subset} videos in the column `subset` of your annotations"
    if subset == "training":
        return named
    return (
        f"{named}, or set evaluation.subset to one that has some, or evaluation.folds to score "
        "the training videos in turn (docs/protocol.md)"
    )
