"""The proposals of all folds' held-out videos in one file."""

import argparse
from pathlib import Path

from actionspan.annotations.tables import read_annotations
from actionspan.errors import InputError
from actionspan.proposals.segments import Row, read_proposals, write_proposals


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument(
        "--proposals", type=Path, nargs="+", required=True, help="of each fold, ActivityNet format"
    )
    parser.add_argument(
        "--annotations",
        type=Path,
        nargs="+",
        required=True,
        help="of each fold, in the same order: the videos of the subset testing are held out",
    )
    parser.add_argument("--out-json", type=Path, required=True, help="to write, ActivityNet format")
    parser.add_argument("--out-csv", type=Path, required=True, help="the same as a table")


def run(arguments: argparse.Namespace) -> None:
    """Take from each fold the proposals of the videos that it holds out, and of no other."""
    if len(arguments.proposals) != len(arguments.annotations):
        counts = f"{len(arguments.proposals)} and {len(arguments.annotations)} files"
        raise InputError(f"--proposals and --annotations: {counts}; one of each for every fold")
    pooled: dict[str, list[Row]] = {}
    seen: dict[str, Path] = {}
    for proposals, annotations in zip(arguments.proposals, arguments.annotations, strict=True):
        given = read_proposals(proposals)
        for video in read_annotations(annotations):
            name = video.video_id
            if video.subset != "testing":
                continue
            if name in seen:
                raise InputError(f"{annotations}: video {name!r} is held out in {seen[name]} too")
            seen[name] = annotations
            if name in given:  # without features it has none, and counts as a miss
                pooled[name] = given[name]
    if not pooled:
        raise InputError(f"{arguments.annotations[0]}: no fold has proposals of a held-out video")
    write_proposals(sorted(pooled.items()), arguments.out_json, arguments.out_csv)
