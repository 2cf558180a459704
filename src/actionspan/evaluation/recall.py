"""What both protocols of average recall share: instances found within 100 growing budgets."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from actionspan.arrays import Float64, Int64
from actionspan.files.scratch import scratch

_BLOCK = 1024  # instances


@dataclass(frozen=True, kw_only=True)
class Recall:
    """What a set of proposals reaches, kept per instance so that videos can be resampled."""

    thresholds: ClassVar[Float64]
    """(K,) least tIoU at which an instance is found."""

    video_ids: tuple[str, ...]
    """The V ground-truth videos that take part."""
    instances: Int64
    """(V,) how many instances each video has."""
    given: Int64
    """(V,) how many proposals are given for each video."""
    best_tiou: Float64
    """(I, 100) the best tIoU of each instance with what its video contributes to each budget."""
    ignored_proposals: int
    """How many proposals are left out because their video has no instance or is not in the ground
    truth."""

    @property
    def proposals(self) -> int:
        """How many proposals are given for these videos."""
        return int(self.given.sum())

    @cached_property
    def hits(self) -> Float64:
        """(I, 100) the share of the tIoU thresholds at which each instance is found."""
        found = scratch(self.best_tiou.shape, np.float64)
        for rows in blocks(len(found)):
            found[rows] = (self.best_tiou[rows, :, None] >= self.thresholds).mean(axis=2)
        return found

    @cached_property
    def recall(self) -> Float64:
        """(K, 100) recall at each tIoU threshold and budget; (K, 0) without videos."""
        if not self.video_ids:
            return np.empty((len(self.thresholds), 0))
        found = np.zeros((len(self.thresholds), self.best_tiou.shape[1]), np.int64)
        for rows in blocks(len(self.best_tiou)):
            found += (self.best_tiou[rows] >= self.thresholds[:, None, None]).sum(axis=1)
        return found / len(self.best_tiou)

    @cached_property
    def average_recall(self) -> Float64:
        """(100,) recall averaged over the tIoU thresholds; (0,) without videos."""
        return np.asarray(self.recall.mean(axis=0))

    def sums_by_video(self, values: Float64) -> Float64:
        """Return the (V, ...) sums over each video's instances of (I, ...) values."""
        sums = scratch((len(self.instances), *values.shape[1:]), np.float64)
        first = np.cumsum(self.instances) - self.instances
        return np.asarray(np.add.reduceat(values, first, out=sums))


def blocks(count: int) -> Iterator[slice]:
    """Yield slices of so many rows: what is made of all at once would take too much memory."""
    for first in range(0, count, _BLOCK):
        yield slice(first, first + _BLOCK)


def best_within(tious: Float64, budgets: Int64) -> Float64:
    """Return (G, B) the best of the first `budgets` columns of (G, P) tIoU, 0 where there is none.

    Args:
        tious: Of a video's instances with its proposals, best score first.
        budgets: (B,) how many proposals the video contributes.
    """
    padded = np.pad(tious, ((0, 0), (1, 0)))  # (G, 1 + P)
    # `take` keeps rows contiguous, on which the last digit of later sums depends
    return np.maximum.accumulate(padded, axis=1).take(budgets, axis=1)


def tiou(instances: Float64, segments: Float64, unit: float = 0.0) -> Float64:
    """Return (G, P) intersection over union of (G, 2) instances and (P, 2) segments.

    It is 0 where either has no length. The operations and their order are the protocols', which
    decide at the thresholds; `actionspan.proposals.overlap` rounds differently.

    Args:
        instances: Starts and ends.
        segments: Starts and ends.
        unit: 1 where ends are the last frames inside, 0 for times.
    """
    start = np.maximum(instances[:, None, 0], segments[None, :, 0])
    end = np.minimum(instances[:, None, 1], segments[None, :, 1])
    overlap = np.maximum(end - start + unit, 0.0)
    lengths = (instances[:, 1] - instances[:, 0] + unit)[:, None]
    union = lengths + (segments[:, 1] - segments[:, 0] + unit) - overlap
    return np.divide(overlap, union, out=np.zeros_like(overlap), where=union > 0)
