"""Which videos each fold of a cross-validation holds out."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace

from actionspan.dataset.tables import Annotation


def fold_parts(video_ids: Iterable[str], folds: int) -> list[list[str]]:
    """Divide videos into `folds` parts of nearly the same size, every k-th by a hash of their ids.

    The order of the ids has no influence, and each video is in one part.

    Raises:
        ValueError: There are not enough videos for so many folds.
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
