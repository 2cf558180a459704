"""What the evaluator learns from: candidates and how well each fits the annotated truth."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from actionspan.arrays import Float32, Float64, Int64
from actionspan.files.scratch import scratch
from actionspan.proposals.evaluator import BOUNDARY_INPUTS, boundary_inputs
from actionspan.proposals.overlap import temporal_iou
from actionspan.proposals.ranking import to_seconds
from actionspan.proposals.store import CandidateTable


@dataclass(frozen=True, kw_only=True)
class Examples:
    """Candidates to train on.

    `features` (R, 32) is an array or a memory map of all candidates; `rows` (M,) says which of its
    rows belong here; `targets` (M,) is each example's best tIoU with the truth. `more` (M, E) are
    further inputs of each, besides the features.
    """

    features: Float32
    rows: Int64
    targets: Float64
    more: Float32 | None = None

    def fingerprint(self) -> str:
        """Return a hash of all but `features`, which have the digest of their file."""
        arrays = [self.rows, self.targets, *([] if self.more is None else [self.more])]
        content = hashlib.sha256()
        for array in arrays:
            content.update(np.ascontiguousarray(array).data)
        return content.hexdigest()

    @property
    def inputs(self) -> int:
        """How many numbers of a candidate the evaluator sees."""
        more: int = 0 if self.more is None else self.more.shape[1]
        return int(self.features.shape[1]) + more


def best_overlap(segments: ArrayLike, truth: ArrayLike) -> Float64:
    """Return the highest tIoU (M,) of segments (M, 2) with any of the truth (G, 2); 0 if G is 0."""
    best: Float64 = temporal_iou(segments, truth).max(axis=1, initial=0)
    return best


def examples_of(
    table: CandidateTable,
    truth: Mapping[str, ArrayLike],
    subset: str,
    limit: int,
    boundary_scores: bool = False,
) -> Examples:
    """Return the best candidates, at most `limit`, of each video of a subset with their targets.

    `truth` has the (G, 2) segments of each annotated video in seconds; a video without annotations
    is left out. With `boundary_scores`, p_start, p_end and the length are further inputs.
    """
    used = [
        index
        for index, video_id in enumerate(table.video_id)
        if table.subset[index] == subset and video_id in truth
    ]
    counts = np.minimum(np.diff(table.offsets)[used], limit)
    total = int(counts.sum())
    rows, targets = scratch((total,), np.int64), scratch((total,), np.float64)
    more = scratch((total if boundary_scores else 0, BOUNDARY_INPUTS), np.float32)
    end = 0
    for index, count in zip(used, counts.tolist(), strict=True):
        first, video_id = int(table.offsets[index]), table.video_id[index]
        place = slice(end, end + count)
        end = place.stop
        rows[place] = np.arange(first, first + count)
        segments, scores = (each[:count] for each in table.boundaries(index))
        seconds = to_seconds(segments, table.duration_seconds[index])
        targets[place] = best_overlap(seconds, truth[video_id])
        if boundary_scores:
            more[place] = boundary_inputs(scores, segments)
    return Examples(
        features=table.features,
        rows=rows,
        targets=targets,
        more=more if boundary_scores else None,
    )
