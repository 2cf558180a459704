"""What the evaluator learns from: candidates and how well each fits the annotated truth."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actionspan.dataset.tables import Annotation
from actionspan.proposals.inputs import BOUNDARY_INPUTS, boundary_inputs
from actionspan.proposals.overlap import temporal_iou
from actionspan.proposals.ranking import to_seconds
from actionspan.proposals.store import CandidateTable
from actionspan.proposals.training import Examples


def best_overlap(segments: ArrayLike, truth: ArrayLike) -> NDArray[np.float64]:
    """Return each segment's highest tIoU with any true one, 0 where there is none.

    Args:
        segments: (M, 2) starts and ends.
        truth: (G, 2) starts and ends in the same unit.
    """
    best: NDArray[np.float64] = temporal_iou(segments, truth).max(axis=1, initial=0)
    return best


def examples_of(
    table: CandidateTable,
    annotations: Sequence[Annotation],
    subset: str,
    limit: int,
    boundary_scores: bool = False,
) -> Examples:
    """Return the best candidates of each video of a subset with their targets.

    Args:
        table: Candidates of all videos.
        annotations: The truth; a video without an entry is left out.
        subset: Which videos.
        limit: At most this many candidates of each video.
        boundary_scores: Add p_start, p_end and the length to the inputs.
    """
    truth = {known.video_id: known for known in annotations}
    rows, targets = [np.zeros(0, np.int64)], [np.zeros(0)]
    more = [np.zeros((0, BOUNDARY_INPUTS), np.float32)]
    for index, video_id in enumerate(table.video_id):
        if table.subset[index] != subset or video_id not in truth:
            continue
        first, after = table.offsets[index : index + 2]
        chosen = np.arange(first, min(after, first + limit))
        instances = [[instance.start, instance.end] for instance in truth[video_id].instances]
        seconds = to_seconds(table.segments[chosen], table.duration_seconds[index])
        rows.append(chosen)
        targets.append(best_overlap(seconds, np.array(instances).reshape(-1, 2)))
        if boundary_scores:
            more.append(boundary_inputs(table.scores[chosen], table.segments[chosen]))
    return Examples(
        features=table.features,
        rows=np.concatenate(rows),
        targets=np.concatenate(targets),
        more=np.concatenate(more) if boundary_scores else None,
    )
