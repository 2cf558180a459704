"""Average recall against the average number of proposals, by ActivityNet's official protocol.

The budget is a percentage of each video's list, not its first k proposals: with V ground-truth
videos, a set of proposals is first cut to about 100 V (each video keeps the same share of its
list, at its best scores), and at average number j = 1 … 100 each video contributes the same
percentage of what it kept. Both cuts truncate to complete proposals, and so do we.

Points that the protocol leaves to the caller, as settled here:

- The videos are those of the ground truth that have an instance. A video without proposals misses
  all its instances; proposals of any other video are left out before budgets are counted.
- Instances of zero length cannot be found and stay in the denominator.
- Proposals of equal score keep the order in which they are given.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from actionspan.arrays import Float64, Int64
from actionspan.evaluation.recall import Recall, best_within, tiou
from actionspan.evaluation.rows import (
    NO_PROPOSALS,
    check_truth,
    match_proposals,
    with_instances,
)
from actionspan.files.scratch import scratch

TIOU_THRESHOLDS: Float64 = np.linspace(0.5, 0.95, 10)
AVERAGE_NUMBERS: Int64 = np.arange(1, 101)
Floats = Float64  # for papers/, until it imports actionspan.arrays
Integers = Int64


@dataclass(frozen=True, kw_only=True)
class AverageRecall(Recall):
    """Recall at average numbers of proposals (AN) 1 … 100, over tIoU 0.5:0.05:0.95."""

    thresholds = TIOU_THRESHOLDS
    average_numbers = AVERAGE_NUMBERS

    @property
    def missing_videos(self) -> int:
        """How many ground-truth videos have no proposal."""
        return int((self.given == 0).sum())

    @property
    def auc(self) -> float:
        """Area under average recall against average number from 1 to 100, in percent."""
        return area_under_curve(self.average_recall)

    def at(self, number: int) -> float:
        """Return AR@`number`."""
        return float(self.average_recall[number - 1])


def area_under_curve(average_recall: Float64) -> float:
    """Return the area under AR (fractions) at AN = 1 … 100 over 100, in percent.

    It starts at AN = 1, so that a perfect set scores 99.
    """
    return 100 * float(np.trapezoid(average_recall, AVERAGE_NUMBERS)) / float(AVERAGE_NUMBERS[-1])


def average_recall_activitynet(
    ground_truth: Mapping[str, ArrayLike], proposals: Mapping[str, ArrayLike]
) -> AverageRecall:
    """Score proposals by ActivityNet's protocol: AR@AN over tIoU 0.5:0.05:0.95, and AUC.

    Args:
        ground_truth: For each video id of one subset, (G, 2) starts and ends, start <= end.
        proposals: For each video id, (P, 3) start, end and score, in any order, start <= end.

    Raises:
        ValueError: A row is reversed or not finite, there is no instance at all, or two ids of
            the proposals mean one video.
    """
    truth = with_instances(check_truth(ground_truth))
    matched, ignored = match_proposals(proposals, truth)
    given = np.array([len(matched.get(video, NO_PROPOSALS)) for video in truth], dtype=np.int64)
    instances = np.array([len(rows) for rows in truth.values()], dtype=np.int64)
    kept, shares = kept_proposals(given)
    best = scratch((int(instances.sum()), len(AVERAGE_NUMBERS)), np.float64)
    end = 0
    for (video, rows), most in zip(truth.items(), kept.tolist(), strict=True):
        begin, end = end, end + len(rows)
        ranked = matched.get(video, NO_PROPOSALS)[:most, :2]
        best[begin:end] = best_within(tiou(rows, ranked), contributed(most, shares))
    return AverageRecall(
        video_ids=tuple(truth),
        instances=instances,
        best_tiou=best,
        given=given,
        ignored_proposals=ignored,
    )


def kept_proposals(given: Int64) -> tuple[Int64, Float64]:
    """Return how many proposals each video keeps, and which share of them counts at AN = 1 … 100.

    Args:
        given: (V,) how many proposals each ground-truth video has.

    Returns:
        (V,) kept and (100,) shares. The order of the floating-point operations is the protocol's:
        29 % of 100 proposals are 28.
    """
    most = AVERAGE_NUMBERS[-1] * float(len(given))
    kept = np.minimum((given * (most / max(given.sum(), 1))).astype(np.int64), given)
    return kept, AVERAGE_NUMBERS / 100.0 * (most / max(kept.sum(), 1))


def contributed(kept: int | Int64, shares: Float64) -> Int64:
    """Return how many of the proposals that videos keep count at each of the shares."""
    return np.asarray(np.minimum((kept * shares).astype(np.int64), kept))
