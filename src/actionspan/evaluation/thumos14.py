"""Average recall against the average number of proposals, by the protocol used on THUMOS14.

Recall is averaged over tIoU 0.5, 0.55, …, 1, counted in whole frames at each video's own rate: a
segment from frame a to frame b has b - a + 1 frames. The budget is a percentage of each video's
full list, 1 … 100. At p percent the average number of proposals (AN) is p percent of the
mean list, and AR at a given AN is interpolated linearly between the percentages. Only videos that
have proposals take part. Instances and lists of a video do not depend on the other videos, so
that videos can be resampled: only AN moves, with the mean list.

Points that the protocol leaves open, as settled here:

- A time in seconds becomes the nearest whole frame, a tie the even one, for instances and
  proposals alike. The published ground truth has the same frames (all 3,457 rows), and a
  proposal at an instance's own times reaches tIoU 1. An instance of no length is one frame.
- At p percent a video contributes int(length · (p / 100)) of its proposals: cut, not rounded, in
  this order of operations, as the published evaluator does. So 29 % of 100 are 28, and 1 % of a
  list shorter than 100 is none, while AN counts the fraction.
- The thresholds are numpy's linspace(0.5, 1, 11), as in the published evaluator. Its eighth lies
  one rounding above 0.85, so that a tIoU of 17/20 does not reach it.
- AR at a number outside the AN measured (1 to 100 percent of the mean list) is None; it is not
  extrapolated.
- Proposals of equal score keep the order in which they are given; in the published
  evaluator their order depends on its sort.
- Videos without an instance, like videos that are not in the ground truth at all, are left out
  before lists are averaged. In the published evaluator they would change AN without a chance to
  be found; the 213 videos of its ground truth all have instances.
- With no proposals at all there is no video, no AN and no AR: every AR@ is None.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from actionspan.arrays import Float64
from actionspan.evaluation.recall import Recall, best_within, tiou
from actionspan.evaluation.rows import check_truth, match_ids, match_proposals, with_instances
from actionspan.files.scratch import scratch

TIOU_THRESHOLDS: Float64 = np.linspace(0.5, 1.0, 11)
SHARES: Float64 = np.arange(1, 101) / 100.0
THUMOS14_NUMBERS = (50, 100, 200, 500, 1000)


class FrameRateError(ValueError):
    """A video that is to be scored has no frame rate."""


@dataclass(frozen=True, kw_only=True)
class Thumos14Recall(Recall):
    """Recall at 1 … 100 percent of each list, of the videos that have instances and proposals."""

    thresholds = TIOU_THRESHOLDS

    missing_videos: int
    """How many videos with instances are left out because they have no proposal."""

    @cached_property
    def average_numbers(self) -> Float64:
        """(100,) AN at 1 … 100 percent; (0,) without videos."""
        if not self.video_ids:
            return np.empty(0)
        return SHARES * (float(self.proposals) / len(self.video_ids))

    def at(self, number: float) -> float | None:
        """Return AR@`number`, or None where AN does not reach from below to above it."""
        value = between(self.average_recall, self.average_numbers, number)
        return None if value is None else float(value)

    def scores(self) -> dict[str, float | None]:
        """Return `{"AR@50": …, …, "AR@1000": …}`, the numbers that papers give."""
        return {f"AR@{number}": self.at(number) for number in THUMOS14_NUMBERS}


def between(curves: Float64, average_numbers: Float64, number: float) -> Float64 | None:
    """Interpolate (..., 100) curves linearly at one average number.

    Args:
        curves: Values at `average_numbers`.
        average_numbers: (100,) rising, or (0,) where nothing was measured.
        number: Where to read the curves; None is returned outside the range measured.
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
        ValueError: A row is reversed or not finite, there is no instance at all, or two ids mean
            one video.
    """
    truth = with_instances(check_truth(ground_truth))
    matched, ignored = match_proposals(proposals, truth)
    rates = {video: fps[name] for name, video in match_ids(fps, truth).items()}
    videos = [video for video in truth if len(matched.get(video, ()))]
    instances = np.array([len(truth[video]) for video in videos], dtype=np.int64)
    best = scratch((int(instances.sum()), len(SHARES)), np.float64)
    end = 0
    for video, count in zip(videos, instances.tolist(), strict=True):
        rate = rates.get(video)
        if rate is None or not 0 < rate < np.inf:
            problem = "is not known" if rate is None else f"is {rate}; a number above 0 is needed"
            raise FrameRateError(f"video {video!r}: its frame rate {problem}")
        rows = matched[video]
        frames = to_frames(truth[video], rate), to_frames(rows[:, :2], rate)
        budgets = (len(rows) * SHARES).astype(np.int64)  # (100,) cut to complete proposals
        begin, end = end, end + count
        best[begin:end] = best_within(tiou(*frames, unit=1.0), budgets)
    return Thumos14Recall(
        video_ids=tuple(videos),
        instances=instances,
        given=np.array([len(matched[video]) for video in videos], dtype=np.int64),
        best_tiou=best,
        ignored_proposals=ignored,
        missing_videos=len(truth) - len(videos),
    )


def to_frames(seconds: Float64, rate: float) -> Float64:
    """Return the nearest whole frames of times in seconds; a tie becomes the even frame."""
    return np.rint(seconds * rate)
