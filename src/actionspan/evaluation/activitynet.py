"""Average recall against the average number of proposals, by ActivityNet's official protocol.

The budget is a percentage of each video's list, not its first k proposals: with V ground-truth
videos, a set of proposals is first cut to about 100 V (each video keeps the same share of its
list, at its best scores), and at average number j = 1 … 100 each video contributes the same
percentage of what it kept. Both cuts truncate to whole proposals, and so do we.

Points which the protocol leaves to the caller, as settled here:

- The videos are those of the ground truth that have an instance. One without proposals misses
  all its instances; proposals of any other video are left out before budgets are counted.
- Instances of zero length cannot be found and stay in the denominator.
- Proposals of equal score keep the order in which they are given.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from actionspan.evaluation.rows import (
    Floats,
    Integers,
    check_truth,
    match_ids,
    match_proposals,
)

__all__ = [
    "AVERAGE_NUMBERS",
    "TIOU_THRESHOLDS",
    "AverageRecall",
    "Floats",
    "Integers",
    "area_under_curve",
    "average_recall_activitynet",
    "match_ids",
    "proposal_budgets",
    "tiou",
]

TIOU_THRESHOLDS: Floats = np.linspace(0.5, 0.95, 10)
AVERAGE_NUMBERS: Integers = np.arange(1, 101)


@dataclass(frozen=True, kw_only=True)
class AverageRecall:
    """What a set of proposals reaches, kept per instance so that videos can be resampled."""

    video_ids: tuple[str, ...]
    """The V ground-truth videos that have an instance."""
    instances: Integers
    """(V,) how many instances each video has."""
    best_tiou: Floats
    """(I, 100) the best tIoU of each instance with what its video contributes at AN = 1 … 100."""
    given: Integers
    """(V,) how many proposals were given for each video."""
    ignored_proposals: int
    """How many were left out because their video is not among these."""

    @property
    def proposals(self) -> int:
        """How many proposals were given for these videos."""
        return int(self.given.sum())

    @property
    def missing_videos(self) -> int:
        """How many ground-truth videos have no proposal."""
        return int((self.given == 0).sum())

    @cached_property
    def hits(self) -> Floats:
        """(I, 100) the share of the tIoU thresholds at which each instance is found."""
        return np.asarray((self.best_tiou[:, :, None] >= TIOU_THRESHOLDS).mean(axis=2))

    @cached_property
    def recall(self) -> Floats:
        """(10, 100) recall at each tIoU threshold and average number."""
        return np.stack([(self.best_tiou >= tiou).mean(axis=0) for tiou in TIOU_THRESHOLDS])

    @cached_property
    def average_recall(self) -> Floats:
        """(100,) recall averaged over the tIoU thresholds."""
        return np.asarray(self.recall.mean(axis=0))

    @property
    def auc(self) -> float:
        """Area under average recall against average number from 1 to 100, in percent."""
        return area_under_curve(self.average_recall)

    def at(self, number: int) -> float:
        """Return AR@`number`."""
        return float(self.average_recall[number - 1])


def area_under_curve(average_recall: Floats) -> float:
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
    truth = {
        video: segments for video, segments in check_truth(ground_truth).items() if len(segments)
    }
    found, ignored = match_proposals(proposals, truth)
    given_for = np.array([len(found.get(video_id, ())) for video_id in truth], dtype=np.int64)
    kept, budgets = proposal_budgets(given_for)
    best = np.zeros((sum(map(len, truth.values())), len(AVERAGE_NUMBERS)))
    row = 0
    for video, (video_id, segments) in enumerate(truth.items()):
        if kept[video]:
            given = found[video_id]
            order = np.argsort(-given[:, 2], kind="stable")[: kept[video]]
            running = np.maximum.accumulate(tiou(segments, given[order, :2]), axis=1)  # (G, n_v)
            within = np.concatenate([np.zeros((len(segments), 1)), running], axis=1)
            best[row : row + len(segments)] = within[:, budgets[video]]  # (G, 100)
        row += len(segments)
    return AverageRecall(
        video_ids=tuple(truth),
        instances=np.array([len(segments) for segments in truth.values()], dtype=np.int64),
        best_tiou=best,
        given=given_for,
        ignored_proposals=ignored,
    )


def proposal_budgets(given: Integers) -> tuple[Integers, Integers]:
    """Return how many proposals each video keeps, and contributes at AN = 1 … 100.

    Args:
        given: (V,) how many proposals each ground-truth video has.

    Returns:
        (V,) kept and (V, 100) contributed. The order of the floating-point operations is the
        protocol's: 29 % of 100 proposals are 28.
    """
    most = AVERAGE_NUMBERS[-1] * float(len(given))
    if not given.sum():
        return given, np.zeros((len(given), len(AVERAGE_NUMBERS)), dtype=np.int64)
    kept = np.minimum((given * (most / given.sum())).astype(np.int64), given)
    if not kept.sum():
        return kept, np.zeros((len(given), len(AVERAGE_NUMBERS)), dtype=np.int64)
    percent = AVERAGE_NUMBERS / 100.0 * (most / kept.sum())
    return kept, np.minimum((kept[:, None] * percent).astype(np.int64), kept[:, None])


def tiou(instances: Floats, segments: Floats) -> Floats:
    """Return (G, P) intersection over union of (G, 2) instances and (P, 2) segments.

    It is 0 where either has no length. The operations and their order are the protocol's, which
    decides at the thresholds; `actionspan.proposals.overlap` rounds differently.
    """
    start = np.maximum(instances[:, None, 0], segments[None, :, 0])
    end = np.minimum(instances[:, None, 1], segments[None, :, 1])
    overlap = np.maximum(end - start, 0.0)
    lengths = (instances[:, 1] - instances[:, 0])[:, None] + (segments[:, 1] - segments[:, 0])
    union = lengths - overlap
    ratio: Floats = np.divide(overlap, union, out=np.zeros_like(overlap), where=union > 0)
    return ratio
