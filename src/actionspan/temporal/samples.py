"""The videos a temporal network learns from: rows of the memory-mapped features, and labels."""

import hashlib
import mmap
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from actionspan.annotations.tables import iterate_annotations
from actionspan.arrays import Float32, Float64, Int64
from actionspan.errors import InputError
from actionspan.features.steps import cut_windows
from actionspan.features.store import Features, open_features
from actionspan.storage.scratch import scratch
from actionspan.temporal.labels import (
    KINDS,
    NO_PART,
    boundary_labels,
    boundary_overlaps,
    divide_steps,
    video_targets,
)
from actionspan.temporal.settings import TemporalSettings

Labels = NDArray[Any]  # bool, or float32 where they are shares
_USED = ("training", "validation")  # subsets
_CHUNK = 64  # rows read at once where all are read


@dataclass(frozen=True, kw_only=True)
class Samples:
    """What training reads; a row is a video, or a window of a video."""

    features: Float32  # (N, T, C), on disk: a batch copies its own rows into memory
    labels: Labels  # (N, T, 3), or `labels.COLUMNS` wide with all that is known
    training: Int64  # the numbers of the subset's rows
    validation: Int64
    fingerprint: str
    parts: dict[str, Int64]  # (T,) of each training video's steps, if the network divides them


def _make_labels(
    path: Path,
    features: Features,
    settings: TemporalSettings,
    columns: int,
    parts: dict[str, Int64],
) -> tuple[Labels, NDArray[np.bool_], list[str]]:
    """Return labels (N, T, columns), the rows (N,) to use, and annotated videos without features.

    A video's labels are made at its own steps; a window has its part of them, and background
    beyond the end of the video. A row is used if it holds more than `window_coverage` of some
    instance, or if that is 0. The labels of other subsets are 0.
    """
    rows = {features.video_id[video.start]: video for video in features.videos()}
    used_names = (name for name, video in rows.items() if features.subset[video.start] in _USED)
    unlabelled = dict.fromkeys(used_names)
    missing = []
    steps = features.array.shape[1]
    kind = np.float32 if columns > KINDS else np.bool_
    labels: Labels = scratch((len(features.video_id), steps, columns), kind)
    used = np.zeros(len(labels), dtype=bool)
    for annotation in iterate_annotations(path):
        name = annotation.video_id
        if name not in rows and annotation.subset in _USED:
            missing.append(name)
        if name not in unlabelled:
            continue
        del unlabelled[name]
        video = rows[name]
        duration = float(features.duration_seconds[video.start])
        segments = np.array([(each.start, each.end) for each in annotation.instances])
        length, starts = int(features.length[video.start]), features.first_step[video]
        how: dict[str, Any] = {"rule": settings.labels, "boundary_ratio": settings.boundary_ratio}
        how["steps"] = length
        try:
            if columns > KINDS:
                full = boundary_overlaps(segments, duration, **how).astype(np.float32)
            else:
                full = boundary_labels(segments, duration, **how)
        except ValueError as error:
            raise InputError(f"{path}: video {name}: {error}") from None
        in_steps = segments.reshape(-1, 2) / duration * length
        if columns > KINDS:
            full = video_targets(full, parts.get(name, NO_PART))
        labels[video] = cut_windows(full, starts, steps)
        inside = window_coverage(in_steps, starts, steps)
        used[video] = (settings.window_coverage == 0) | (inside > settings.window_coverage)
    for name in unlabelled:
        line = f"video {name} has features but no entry in the annotations"
        cure = "add one, with an empty list if nothing happens in it"
        raise InputError(f"{path}: {line}; {cure}")
    return labels, used, missing


def window_coverage(segments: Float64, starts: Int64, steps: int) -> Float64:
    """Return (N,) the largest part of a segment that each window of `steps` steps holds.

    Segments (K, 2) and the windows' `starts` (N,) are in steps; a segment without length counts
    as 0.
    """
    begins, ends = segments.reshape(-1, 2).T  # (K,)
    shared = np.minimum(ends, starts[:, None] + steps) - np.maximum(begins, starts[:, None])
    lengths = ends - begins
    parts = np.divide(shared, lengths, out=np.zeros(shared.shape), where=lengths > 0)  # (N, K)
    held: Float64 = np.clip(parts, 0, 1).max(axis=1, initial=0)
    return held


def _fingerprint(path: Path, features: Features, labels: Labels, rows: Int64) -> str:
    """Return a hash of the features and labels of `rows`; all features must be finite.

    The writer's note about the features replaces them, as reading the features of a large
    set takes minutes.
    """
    content = hashlib.sha256(repr((features.array.shape, features.checked)).encode())
    content.update(rows.data)
    for begin in range(0, len(rows), _CHUNK):
        chosen = rows[begin : begin + _CHUNK]
        if not features.checked:
            chunk = np.ascontiguousarray(features.array[chosen])
            finite = np.isfinite(chunk).all(axis=2)
            if not finite.all():
                video, step = np.argwhere(~finite)[0]
                place = f"features of video {features.video_id[chosen[video]]}, step {step}"
                raise InputError(f"{path}: {place}: NaN or infinity; extract them again")
            content.update(chunk.data)
        content.update(np.ascontiguousarray(labels[chosen]).data)
    return content.hexdigest()


def read_samples(
    features_path: Path,
    annotations_path: Path,
    settings: TemporalSettings,
    *,
    columns: int = KINDS,
    parts: int = 0,
    causal: bool = False,
    check: bool = True,
) -> Samples:
    """Read features.h5 (by memory map) and annotations.json.

    Labels have `columns` columns; the training footage is divided into `parts`, if any. With
    `causal` the network learns from causal.h5.

    Annotated videos that have no features are left out, with a line that names them. Without
    `check` (on ranks after the first) no feature is looked at, no line printed, the fingerprint is
    empty.

    Raises:
        InputError: A file is missing, training videos are missing, a video has no annotation
            entry, or features are not finite.
    """
    # choose the rows
    features = open_features(features_path)
    training, validation = (features.rows(subset) for subset in _USED)
    if parts and not features.inside:
        wanted = "a cross-fitted network learns from sequences.h5, which `features sequences` makes"
        raise InputError(f"{features_path}: rows of a fixed number of steps; {wanted}")
    if features.causal != causal:
        given, wanted = ("causal", "sequences") if features.causal else ("sequences", "causal")
        line = f"this network learns from {wanted}.h5, which `features {wanted}` makes"
        raise InputError(f"{features_path}: features as {given}.h5 has them; {line}")
    if not len(training):
        line = f"no video of subset 'training' among {len(features.video_id)}"
        raise InputError(f"{features_path}: {line}; the temporal network needs at least one")
    # label them
    divided = {}
    if parts:
        learned = [rows for rows in features.videos() if features.subset[rows.start] == "training"]
        shown = {features.video_id[rows.start]: features.shown(rows) for rows in learned}
        divided = divide_steps(shown, parts)
    labels, used, missing = _make_labels(annotations_path, features, settings, columns, divided)
    if missing and check:
        line = f"{len(missing)} annotated videos have no features and are left out"
        print(f"{annotations_path}: {line}, the first {missing[0]}", file=sys.stderr)
    if not used[training].any():
        line = f"no training row holds more than window_coverage {settings.window_coverage}"
        cure = "lower it, or make windows longer"
        raise InputError(f"{features_path}: {line} of an instance; {cure}")
    training, validation = training[used[training]], validation[used[validation]]
    # read them once
    rows = np.concatenate([training, validation])
    return Samples(
        features=features.array,
        labels=labels,
        training=training,
        validation=validation,
        fingerprint=_fingerprint(features_path, features, labels, rows) if check else "",
        parts=divided,
    )


def epoch_order(rows: Int64, seed: int, epoch: int) -> Int64:
    """Return the rows in the random order of an epoch."""
    return np.random.default_rng([seed, epoch]).permutation(rows)


def batches(
    samples: Samples,
    rows: Int64,
    batch_size: int,
    share: Callable[[int], slice] = lambda count: slice(0, count),
) -> Iterator[tuple[Tensor, Tensor, slice]]:
    """Yield batches of `rows` in their order, or a rank's shares of them.

    `share` takes the length of a batch and returns which part of it is read; the last batch may be
    smaller.

    Yields:
        Features (S, T, C) of the share and labels (B, T, 3) of the full batch, float32, and which
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


def _announce(features: Float32, rows: Int64) -> None:
    """Have the system read these rows of a memory map ahead, rather than page by page."""
    if not isinstance(features, np.memmap) or not isinstance(features.base, mmap.mmap):
        return
    row_bytes = features[0].nbytes
    first = features.offset % mmap.ALLOCATIONGRANULARITY  # of the array, in the mapping
    for row in rows.tolist():
        begin = first + row * row_bytes
        page = begin - begin % mmap.PAGESIZE
        features.base.madvise(mmap.MADV_WILLNEED, page, begin - page + row_bytes)
