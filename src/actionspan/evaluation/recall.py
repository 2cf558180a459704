"""Average recall against the average number of proposals (AN), by ActivityNet and THUMOS14.

In both, the budget is a percentage of each video's list, not its first k proposals, and is cut to
complete proposals. Proposals of equal score keep the order in which they are given.

**ActivityNet**, the official protocol: with V ground-truth videos, a set of proposals is first cut
to about 100 V (each video keeps the same share of its list, at its best scores), and at average
number j = 1 … 100 each video contributes the same percentage of its kept proposals. We
settle the details that it leaves open:
- The videos are those with an instance in the ground truth. A video without proposals misses
  all its instances; proposals of any other video are left out before budgets are counted.
- Instances of zero length cannot be found and stay in the denominator.

**THUMOS14**: tIoU is counted in whole frames at each video's own rate; a segment from frame a to
frame b has b - a + 1 frames. The budgets are 1 … 100 percent of each video's full list. At p
percent AN is p percent of the mean list, and AR at a given AN is interpolated linearly between the
percentages. Only videos with instances and proposals take part. Instances and lists of a video do
not depend on the other videos, so that videos can be resampled: only AN moves. We
settle the details that it leaves open:
- A time in seconds becomes the nearest whole frame, a tie the even one, for instances and
  proposals alike. The published ground truth has the same frames (all 3,457 rows), and a
  proposal at an instance's own times reaches tIoU 1. An instance of no length is one frame.
- At p percent a video contributes int(length · (p / 100)) of its proposals, in this order of
  operations, as in the published evaluator. So 29 % of 100 are 28, and 1 % of a list shorter than
  100 is none, while AN counts the fraction.
- AR at a number outside the AN measured (1 to 100 percent of the mean list) is None; it is not
  extrapolated. With no proposals at all every AR@ is None.
- Videos without an instance, or outside the ground truth, are left out before lists are averaged.
  In the published evaluator they would change AN without a chance to be found; the 213 videos of
  its ground truth all have instances.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from actionspan.arrays import Float64, Int64
from actionspan.evaluation.rows import (
    NO_PROPOSALS,
    check_truth,
    match_ids,
    match_proposals,
    with_instances,
)
from actionspan.storage.scratch import scratch

# All thresholds of tIoU. Tables and figures take theirs from the protocols', as numpy rounds them.
TIOU_THRESHOLDS: Float64 = np.linspace(0.5, 0.95, 10)
"""ActivityNet's, for AR and for the average of mAP."""
_THUMOS14_THRESHOLDS: Float64 = np.linspace(0.5, 1.0, 11)
"""As in the published evaluator; the eighth is one rounding above 0.85: 17/20 does not reach it."""
DETECTION_THRESHOLDS: Float64 = np.concatenate([TIOU_THRESHOLDS, [0.3, 0.4]])
MISSES_THRESHOLDS: Float64 = TIOU_THRESHOLDS[[0, 4, 8]]  # 0.5, 0.7, 0.9
QUALITY_THRESHOLDS: Float64 = TIOU_THRESHOLDS[[0, 4]]  # 0.5, 0.7
SCORE_COLUMNS = ("0.30", "0.50", "0.75", "0.95")  # of mAP, as `actionspan score` prints it
CLASS_COLUMNS = ("0.30", "0.40", "0.50", "0.75", "0.95")  # of mAP by class

AVERAGE_NUMBERS: Int64 = np.arange(1, 101)  # of ActivityNet
_SHARES: Float64 = np.arange(1, 101) / 100.0  # of THUMOS14's lists
THUMOS14_NUMBERS = (50, 100, 200, 500, 1000)

# a video's (G, 2) instances, (P, 2) proposals, best first, and how many count at each budget (100,)
_Lists = tuple[Float64, Float64, Int64]
_BLOCK = 1024  # instances
_CELLS = 1 << 15  # pairs of an instance and a proposal: a table of them fits into the cache


@dataclass(frozen=True, kw_only=True)
class Recall:
    """The best tIoU of a set of proposals, kept per instance so that videos can be resampled."""

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
    """How many proposals are of videos without an instance or outside the ground truth."""

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
    """Yield slices of rows, to process in blocks that fit into memory."""
    for first in range(0, count, _BLOCK):
        yield slice(first, first + _BLOCK)


def _best_of_all(lists: Iterable[_Lists], instances: Int64, unit: float = 0.0) -> Float64:
    """Return (I, 100) the best tIoU of each instance with what counts at each budget.

    `instances` (V,) are G of each video, `unit` is the unit of `tiou`.
    """
    best, end = scratch((int(instances.sum()), len(_SHARES)), np.float64), 0
    for rows, ranked, budgets in (zip(*group, strict=True) for group in _together(lists)):
        counts = [len(each) for each in rows]
        # 1. one table of proposals, as wide as the longest list; budgets end before the padding
        table = np.zeros((len(ranked), max(1, *map(len, ranked)), 2))
        for place, proposals in enumerate(ranked):
            table[place, : len(proposals)] = proposals
        # 2. the best of each instance so far, then at each budget
        each = _tiou_of_pairs(np.concatenate(rows)[:, None], np.repeat(table, counts, axis=0), unit)
        so_far = np.maximum.accumulate(each, axis=1, out=each)
        taken = np.repeat(np.array(budgets), counts, axis=0)
        found = np.take_along_axis(so_far, np.maximum(taken - 1, 0), axis=1)
        best[end : end + len(taken)] = np.where(taken > 0, found, 0.0)
        end += len(taken)
    return best


def _together(lists: Iterable[_Lists]) -> Iterator[list[_Lists]]:
    """Yield videos in groups with tables of instances and proposals that fit into the cache."""
    group: list[_Lists] = []
    instances = longest = 0
    for video in lists:
        instances, longest = instances + len(video[0]), max(longest, len(video[1]))
        if group and instances * longest > _CELLS:
            yield group
            group, instances, longest = [], len(video[0]), len(video[1])
        group.append(video)
    yield from [group] if group else []


def tiou(instances: Float64, segments: Float64, unit: float = 0.0) -> Float64:
    """Return (G, P) intersection over union of (G, 2) instances and (P, 2) segments.

    It is 0 where either has no length. The operations and their order are the protocols', which
    decide at the thresholds. The `unit` is 1 where ends are the last frames inside, 0 for times.
    """
    return _tiou_of_pairs(instances[:, None], segments[None], unit)


def _tiou_of_pairs(instances: Float64, segments: Float64, unit: float = 0.0) -> Float64:
    """Return `tiou` (...) of instances (..., 2) and segments (..., 2) that broadcast."""
    start = np.maximum(instances[..., 0], segments[..., 0])
    end = np.minimum(instances[..., 1], segments[..., 1])
    overlap = np.maximum(end - start + unit, 0.0)
    first, second = (ends[..., 1] - ends[..., 0] + unit for ends in (instances, segments))
    union = first + second - overlap
    return np.divide(overlap, union, out=np.zeros_like(overlap), where=union > 0)


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
        ValueError: A row is reversed or not finite, no video has an instance, or two ids of
            the proposals mean one video.
    """
    truth = with_instances(check_truth(ground_truth))
    matched, ignored = match_proposals(proposals, truth)
    given = np.array([len(matched.get(video, NO_PROPOSALS)) for video in truth], dtype=np.int64)
    instances = np.array([len(rows) for rows in truth.values()], dtype=np.int64)
    kept, shares = kept_proposals(given)
    lists = (
        (rows, matched.get(video, NO_PROPOSALS)[:most, :2], contributed(most, shares))
        for (video, rows), most in zip(truth.items(), kept.tolist(), strict=True)
    )
    return AverageRecall(
        video_ids=tuple(truth),
        instances=instances,
        best_tiou=_best_of_all(lists, instances),
        given=given,
        ignored_proposals=ignored,
    )


def kept_proposals(given: Int64) -> tuple[Int64, Float64]:
    """Return how many proposals each video keeps (V,), and the share that counts at each AN (100,).

    `given` (V,) is the number of proposals of each ground-truth video. The order of the
    floating-point operations is the protocol's: 29 % of 100 proposals are 28.
    """
    most = AVERAGE_NUMBERS[-1] * float(len(given))
    kept = np.minimum((given * (most / max(given.sum(), 1))).astype(np.int64), given)
    return kept, AVERAGE_NUMBERS / 100.0 * (most / max(kept.sum(), 1))


def contributed(kept: int | Int64, shares: Float64) -> Int64:
    """Return how many of the proposals that videos keep count at each of the shares."""
    return np.asarray(np.minimum((kept * shares).astype(np.int64), kept))


class FrameRateError(ValueError):
    """A video that is to be scored has no frame rate."""


@dataclass(frozen=True, kw_only=True)
class Thumos14Recall(Recall):
    """Recall at 1 … 100 percent of each list, of the videos that have instances and proposals."""

    thresholds = _THUMOS14_THRESHOLDS

    missing_videos: int
    """How many videos with instances are left out because they have no proposal."""

    @cached_property
    def average_numbers(self) -> Float64:
        """(100,) AN at 1 … 100 percent; (0,) without videos."""
        if not self.video_ids:
            return np.empty(0)
        return _SHARES * (float(self.proposals) / len(self.video_ids))

    def at(self, number: float) -> float | None:
        """Return AR@`number`, or None where AN does not reach from below to above it."""
        value = between(self.average_recall, self.average_numbers, number)
        return None if value is None else float(value)

    def scores(self) -> dict[str, float | None]:
        """Return `{"AR@50": …, …, "AR@1000": …}`, the numbers that papers give."""
        return {f"AR@{number}": self.at(number) for number in THUMOS14_NUMBERS}


def between(curves: Float64, average_numbers: Float64, number: float) -> Float64 | None:
    """Interpolate (..., 100) curves, given at rising `average_numbers`, linearly at one number.

    Outside the range measured, and where nothing is measured, (0,), the result is None.
    """
    if not len(average_numbers) or not average_numbers[0] <= number <= average_numbers[-1]:
        return None
    after = max(int(np.searchsorted(average_numbers, number)), 1)
    low, high = average_numbers[after - 1 : after + 1]
    weight = (number - low) / (high - low)
    return np.asarray((1 - weight) * curves[..., after - 1] + weight * curves[..., after])


def average_recall_thumos14(
    ground_truth: Mapping[str, ArrayLike],
    proposals: Mapping[str, ArrayLike],
    fps: Mapping[str, float],
) -> Thumos14Recall:
    """Score proposals by THUMOS14's protocol: AR@AN over tIoU 0.5:0.05:1.0 of whole frames.

    Args:
        ground_truth: For each video id, (G, 2) starts and ends in seconds, start <= end.
        proposals: For each video id, (P, 3) start, end (seconds) and score, in any order.
        fps: For each video id of the ground truth that has proposals, its frames a second.

    Raises:
        FrameRateError: A video that is scored has no frame rate above 0.
        ValueError: A row is reversed or not finite, no video has an instance, or two ids mean
            one video.
    """
    truth = with_instances(check_truth(ground_truth))
    matched, ignored = match_proposals(proposals, truth)
    rates = {video: fps[name] for name, video in match_ids(fps, truth).items()}
    videos = [video for video in truth if len(matched.get(video, ()))]
    instances = np.array([len(truth[video]) for video in videos], dtype=np.int64)

    def in_frames() -> Iterator[_Lists]:
        for video in videos:
            rate = rates.get(video)
            if rate is None or not 0 < rate < np.inf:
                wrong = "is not known" if rate is None else f"is {rate}; a number above 0 is needed"
                raise FrameRateError(f"video {video!r}: its frame rate {wrong}")
            rows = matched[video]
            budgets = (len(rows) * _SHARES).astype(np.int64)  # (100,) cut to complete proposals
            yield to_frames(truth[video], rate), to_frames(rows[:, :2], rate), budgets

    return Thumos14Recall(
        video_ids=tuple(videos),
        instances=instances,
        given=np.array([len(matched[video]) for video in videos], dtype=np.int64),
        best_tiou=_best_of_all(in_frames(), instances, unit=1.0),
        ignored_proposals=ignored,
        missing_videos=len(truth) - len(videos),
    )


def to_frames(seconds: Float64, rate: float) -> Float64:
    """Return the nearest whole frames of times in seconds; a tie becomes the even frame."""
    return np.rint(seconds * rate)
