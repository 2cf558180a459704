"""One fold of a cross-validation over the training videos, as a data set of its own."""

import argparse
from dataclasses import replace
from pathlib import Path

from actionspan.dataset.holding_out import hold_out
from actionspan.dataset.tables import (
    VIDEO_COLUMNS,
    read_annotations,
    read_name,
    read_videos,
    write_annotations,
    write_videos,
)
from actionspan.errors import InputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--annotations", type=Path, required=True, help="dataset/annotations.json")
    parser.add_argument("--videos", type=Path, required=True, help="dataset/videos.tsv")
    parser.add_argument("--folds", type=int, required=True, help="how many there are")
    parser.add_argument("--fold", type=int, required=True, help="which of them, from 1")
    parser.add_argument("--out", type=Path, required=True, help="folder of the two tables")


def run(arguments: argparse.Namespace) -> None:
    """Write the tables of the training videos, the held-out ones in the subset testing."""
    annotations, fold, folds = arguments.annotations, arguments.fold, arguments.folds
    try:
        known = hold_out(read_annotations(annotations), folds, fold)
    except ValueError as error:
        raise InputError(f"{annotations}: {error}") from None
    subsets = {video.video_id: video.subset for video in known}
    videos = [
        replace(video, subset=subsets[video.video_id])
        for video in read_videos(arguments.videos)
        if video.video_id in subsets
    ]
    write_videos(arguments.out / "videos.tsv", videos, VIDEO_COLUMNS)
    name = f"{read_name(annotations)}, fold {fold} of {folds}"
    write_annotations(arguments.out / "annotations.json", known, name)
