"""The videos a temporal network learns from: rows of the memory-mapped features, and labels."""

import hashlib
import mmap
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from actionspan.dataset.tables import Annotation, read_annotations
from actionspan.errors import InputError
from actionspan.features.store import Features, open_features
from actionspan.features.windows import cut_windows
from actionspan.temporal.labels import soft_boundary_labels
from actionspan.temporal.settings import TemporalSettings

Array = npt.NDArray[Any]
CHUNK = 64  # videos read at once where all are read


@dataclass(frozen=True, kw_only=True)
class Samples:
    """What training reads.

    A row is a video, or a window of one. `features` (N, T, C) stays on disk: a batch copies its
    own rows into memory and nothing else. `labels` (N, T, 3), bool where they are hard;
    `training` and `validation` are the numbers of those subsets' rows.
    """

    features: Array
    labels: Array
    training: Array
    validation: Array
    fingerprint: str


def make_labels(
    annotations: Sequence[Annotation], features: Features, rows: Array, settings: TemporalSettings
) -> tuple[Array, Array]:
    """Return the labels of all rows, and which of the wanted rows training and validation use.

    A video's labels are made at its own steps; a window has its part of them, and background
    beyond the end of the video.

    Args:
        annotations: Of all videos.
        features: Whose rows are meant.
        rows: Numbers of the wanted rows; the labels of others stay 0.
        settings: How labels are made, and what a window must hold.

    Returns:
        (N, T, 3) bool, or float32 where labels are smooth; and a (N,) mask: rows that hold more
        than `window_coverage` of some instance, or all where that is 0.

    Raises:
        InputError: A video has no annotation entry, or a segment that is none.
    """
    known = {annotation.video_id: annotation for annotation in annotations}
    steps = features.array.shape[1]
    kind: type[np.generic] = np.float32 if settings.smooth_labels else np.bool_
    labels: Array = np.zeros((len(features.video_id), steps, 3), dtype=kind)
    used = np.zeros(len(labels), dtype=bool)
    wanted = np.zeros(len(labels), dtype=bool)
    wanted[rows] = True
    for video in features.videos():
        if not wanted[video].any():
            continue
        name, duration = features.video_id[video.start], features.duration_seconds[video.start]
        if name not in known:
            raise InputError(
                f"video {name} has features but no entry in the annotations; "
                "add one, with an empty list if nothing happens in it"
            )
        segments = np.array([(one.start, one.end) for one in known[name].instances])
        length, starts = int(features.length[video.start]), features.first_step[video]
        try:
            whole = soft_boundary_labels(
                segments,
                float(duration),
                steps=length,
                rule=settings.labels,
                boundary_ratio=settings.boundary_ratio,
                sigma=settings.smooth_labels,
            )
        except ValueError as error:
            raise InputError(f"video {name}: {error}") from None
        labels[video] = cut_windows(whole, starts, steps)
        inside = window_coverage(segments / float(duration) * length, starts, steps)
        used[video] = (settings.window_coverage == 0) | (inside > settings.window_coverage)
    return labels, used


def window_coverage(segments: Array, starts: Array, steps: int) -> Array:
    """Return (N,) the largest part of one segment that each window of `steps` holds.

    A segment without length has no part, and counts as 0.

    Args:
        segments: (K, 2) starts and ends, in steps; K may be 0.
        starts: (N,) first step of each window.
        steps: Length of a window.
    """
    begins, ends = segments.reshape(-1, 2).T  # (K,)
    shared = np.minimum(ends, starts[:, None] + steps) - np.maximum(begins, starts[:, None])
    lengths = ends - begins
    parts = np.divide(shared, lengths, out=np.zeros(shared.shape), where=lengths > 0)
    held: Array = np.clip(parts, 0, 1).max(axis=1, initial=0)
    return held


def fingerprint(features: Array, labels: Array, rows: Array, video_ids: Sequence[str]) -> str:
    """Return a hash of the features and labels of `rows`, read in chunks.

    Raises:
        InputError: A feature is not finite; the line names the video and the step.
    """
    content = hashlib.sha256(repr((features.shape, rows.tolist())).encode())
    for begin in range(0, len(rows), CHUNK):
        chosen = rows[begin : begin + CHUNK]
        chunk = np.ascontiguousarray(features[chosen])
        finite = np.isfinite(chunk).all(axis=2)
        if not finite.all():
            video, step = np.argwhere(~finite)[0]
            raise InputError(
                f"features of video {video_ids[chosen[video]]}, step {step}: NaN or infinity; "
                "extract them again"
            )
        content.update(chunk.tobytes())
        chunk = labels[chosen]
        content.update(np.packbits(chunk).tobytes() if chunk.dtype == bool else chunk.tobytes())
    return content.hexdigest()


def read_samples(
    features_path: Path,
    annotations_path: Path,
    settings: TemporalSettings,
    *,
    check: bool = True,
) -> Samples:
    """Read features.h5 (by memory map) and annotations.json.

    Videos of the annotations that have no features are left out, with a line that says so.

    Args:
        features_path: features.h5.
        annotations_path: The canonical annotations.json.
        settings: How labels are made.
        check: Look at every feature and say what is left out; where another process has done so,
            False saves reading the file. The fingerprint is then empty.

    Raises:
        InputError: A file is missing, there is no training video, a video has no annotation
            entry, or features are not finite.
    """
    features = open_features(features_path)
    annotations = read_annotations(annotations_path)
    video_ids = [str(name) for name in features.video_id]
    subset = np.array([str(name) for name in features.subset], dtype=object)
    training, validation = (np.flatnonzero(subset == s) for s in ("training", "validation"))
    if not len(training):
        raise InputError(
            f"{features_path}: no video of subset 'training' among {len(video_ids)}; "
            "the temporal network needs one at least"
        )
    have = set(video_ids)
    missing = [
        one.video_id
        for one in annotations
        if one.subset in ("training", "validation") and one.video_id not in have
    ]
    if missing and check:
        print(
            f"{annotations_path}: {len(missing)} annotated videos have no features and are left "
            f"out, the first {missing[0]}",
            file=sys.stderr,
        )
    rows = np.concatenate([training, validation])
    try:
        labels, used = make_labels(annotations, features, rows, settings)
    except InputError as error:
        raise InputError(f"{annotations_path}: {error}") from None
    if not used[training].any():
        raise InputError(
            f"{features_path}: no training row holds more than window_coverage "
            f"{settings.window_coverage} of an instance; lower it, or make windows longer"
        )
    training, validation = training[used[training]], validation[used[validation]]
    rows = np.concatenate([training, validation])
    try:
        content = fingerprint(features.array, labels, rows, video_ids) if check else ""
    except InputError as error:
        raise InputError(f"{features_path}: {error}") from None
    return Samples(
        features=features.array,
        labels=labels,
        training=training,
        validation=validation,
        fingerprint=content,
    )


def epoch_order(rows: Array, seed: int, epoch: int) -> Array:
    """Return the rows in the random order of an epoch, which (seed, epoch) alone decide."""
    order: Array = np.random.default_rng([seed, epoch]).permutation(rows)
    return order


def batches(
    samples: Samples,
    rows: Array,
    batch_size: int,
    share: Callable[[int], slice] = lambda count: slice(0, count),
) -> Iterator[tuple[Tensor, Tensor, slice]]:
    """Yield batches of `rows` in their order, or one rank's shares of them.

    Args:
        samples: Of all videos.
        rows: Row numbers.
        batch_size: Videos in a whole batch; the last may be smaller.
        share: Says which part of a batch of so many videos is read.

    Yields:
        Features (S, T, C) of the share and labels (B, T, 3) of the whole batch, float32, and which
        rows of the batch the share is.
    """
    for begin in range(0, len(rows), batch_size):
        chosen = rows[begin : begin + batch_size]
        own = share(len(chosen))
        _announce(samples.features, chosen[own])
        # indexed by an array: that copies the rows, and lets other threads run while it reads
        features = np.asarray(samples.features[chosen[own]], dtype=np.float32)
        labels = samples.labels[chosen].astype(np.float32)
        yield torch.from_numpy(features), torch.from_numpy(labels), own


def _announce(features: Array, rows: Array) -> None:
    """Have the system read these rows of a memory map, and not also what lies around each page.

    A page that is not in memory is else read with its surroundings, up to `read_ahead_kb` of the
    disk, and one page after the other.
    """
    if not isinstance(features, np.memmap) or not isinstance(features.base, mmap.mmap):
        return
    row_bytes = features[0].nbytes
    first = features.offset % mmap.ALLOCATIONGRANULARITY  # of the array, in the mapping
    for row in rows.tolist():
        begin = first + row * row_bytes
        page = begin - begin % mmap.PAGESIZE
        features.base.madvise(mmap.MADV_WILLNEED, page, begin - page + row_bytes)
