"""One fold of a cross-validation over the training videos, as a separate data set."""

import argparse
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from actionspan.annotations import tables
from actionspan.annotations.tables import Annotation
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
        known = hold_out(tables.read_annotations(annotations), folds, fold)
    except ValueError as error:
        raise InputError(f"{annotations}: {error}") from None
    subsets = {video.video_id: video.subset for video in known}
    videos = [
        replace(video, subset=subsets[video.video_id])
        for video in tables.read_videos(arguments.videos)
        if video.video_id in subsets
    ]
    tables.write_videos(arguments.out / "videos.tsv", videos, tables.VIDEO_COLUMNS)
    name = f"{tables.read_name(annotations)}, fold {fold} of {folds}"
    tables.write_annotations(arguments.out / "annotations.json", known, name)


def fold_parts(video_ids: Iterable[str], folds: int) -> list[list[str]]:
    """Divide videos into `folds` parts of nearly the same size, every k-th by a hash of their ids.

    The order of the ids has no influence, and each video is in one part.

    Raises:
        ValueError: There are fewer videos than folds.
    """
    order = sorted(video_ids, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    if not 2 <= folds <= len(order):
        raise ValueError(f"{folds} folds of {len(order)} training videos: from 2 to their number")
    return [order[fold::folds] for fold in range(folds)]


def hold_out(annotations: Sequence[Annotation], folds: int, fold: int) -> list[Annotation]:
    """Return the training videos, those that a fold (from 1) holds out as the subset testing.

    Raises:
        ValueError: There are not enough training videos, or no such fold.
    """
    training = [video for video in annotations if video.subset == "training"]
    parts = fold_parts((video.video_id for video in training), folds)
    if not 1 <= fold <= folds:
        raise ValueError(f"fold {fold}: from 1 to {folds}")
    out = set(parts[fold - 1])
    return [replace(each, subset="testing") if each.video_id in out else each for each in training]
