"""Average recall against the average number of proposals, by the protocol used on THUMOS14.

Recall is averaged over tIoU 0.5, 0.55, …, 1, which is counted in whole frames of each video's own
rate: a segment from frame a to frame b has b - a + 1 frames. The budget is a percentage of each
video's whole list, 1 … 100. At p percent the average number of proposals (AN) is p percent of the
mean list, and AR at a given AN is interpolated linearly between the percentages. Only videos that
have proposals take part. Instances and lists of a video do not depend on the other videos, so
that videos can be resampled: only AN moves, with the mean list.

Points which the protocol leaves open, as settled here:

- A time in seconds becomes the nearest whole frame, a tie the even one, for instances and
  proposals alike. The frames in the published ground truth are just these (all 3,457 rows), and a
  proposal at an instance's own times reaches tIoU 1. An instance of no length is one frame.
- At p percent a video contributes int(length · (p / 100)) of its proposals: cut, not rounded, in
  this order of operations, as the published evaluator does. So 29 % of 100 are 28, and 1 % of a
  list shorter than 100 is none, while AN counts the fraction.
- The thresholds are numpy's linspace(0.5, 1, 11), as in the published evaluator. Its eighth lies
  one rounding above 0.85, so that a tIoU of 17/20 does not reach it.
- AR at a number outside the AN measured (1 to 100 percent of the mean list) is None: neither
  held nor extended.
- Proposals of equal score keep the order in which they are given; the published evaluator's order
  of them depends on its sort.
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

from actionspan.evaluation.rows import (
    Floats,
    Integers,
    check_truth,
    match_ids,
    match_proposals,
)

TIOU_THRESHOLDS: Floats = np.linspace(0.5, 1.0, 11)
SHARES: Floats = np.arange(1, 101) / 100.0
THUMOS14_NUMBERS = (50, 100, 200, 500, 1000)


class FrameRateError(ValueError):
    """A video that is to be scored has no frame rate."""


@dataclass(frozen=True, kw_only=True)
class Thumos14Recall:
    """What a set of proposals reaches, kept per instance so that videos can be resampled."""

    video_ids: tuple[str, ...]
    """The V ground-truth videos that have both instances and proposals."""
    instances: Integers
    """(V,) how many instances each video has."""
    given: Integers
    """(V,) how many proposals each video has."""
    best_tiou: Floats
    """(I, 100) the best tIoU of each instance within 1 … 100 percent of its video's list."""
    ignored_proposals: int
    """How many were left out because their video has no instance or is not in the ground truth."""
    missing_videos: int
    """How many videos with instances were left out because they have no proposal."""

    @property
    def proposals(self) -> int:
        """How many proposals the videos have together."""
        return int(self.given.sum())

    @cached_property
    def average_numbers(self) -> Floats:
        """(100,) AN at 1 … 100 percent; (0,) where no video has proposals."""
        if not self.video_ids:
            return np.empty(0)
        return SHARES * (float(self.proposals) / len(self.video_ids))

    @cached_property
    def hits(self) -> Floats:
        """(I, 100) the share of the tIoU thresholds at which each instance is found."""
        return np.asarray((self.best_tiou[:, :, None] >= TIOU_THRESHOLDS).mean(axis=2))

    @cached_property
    def recall(self) -> Floats:
        """(11, 100) recall at each tIoU threshold and percentage; (11, 0) without proposals."""
        if not self.video_ids:
            return np.empty((len(TIOU_THRESHOLDS), 0))
        return np.stack([(self.best_tiou >= tiou).mean(axis=0) for tiou in TIOU_THRESHOLDS])

    @cached_property
    def average_recall(self) -> Floats:
        """(100,) recall averaged over the tIoU thresholds; (0,) without proposals."""
        return np.asarray(self.recall.mean(axis=0))

    def at(self, number: float) -> float | None:
        """Return AR@`number`, or None where AN does not reach from below to above it."""
        value = between(self.average_recall, self.average_numbers, number)
        return None if value is None else float(value)

    def scores(self) -> dict[str, float | None]:
        """Return `{"AR@50": …, …, "AR@1000": …}`, the numbers that papers give."""
        return {f"AR@{number}": self.at(number) for number in THUMOS14_NUMBERS}


def between(curves: Floats, average_numbers: Floats, number: float) -> Floats | None:
    """Return curves at one average number, linearly between those measured.

    Args:
        curves: (..., 100) values at `average_numbers`.
        average_numbers: (100,) rising, or (0,) where nothing was measured.
        number: Where to read the curves.

    Returns:
        (...) values, or None where `number` is outside the range measured.
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
    truth = {
        video: segments for video, segments in check_truth(ground_truth).items() if len(segments)
    }
    found, ignored = match_proposals(proposals, truth)
    rates = {video: fps[name] for name, video in match_ids(fps, truth).items()}
    videos = [video for video in truth if len(found.get(video, ()))]
    best = np.zeros((sum(len(truth[video]) for video in videos), len(SHARES)))
    row = 0
    for video in videos:
        rate = rates.get(video)
        if rate is None or not 0 < rate < np.inf:
            said = "is not known" if rate is None else f"is {rate}; a number above 0 is needed"
            raise FrameRateError(f"video {video!r}: its frame rate {said}")
        given = found[video]
        order = np.argsort(-given[:, 2], kind="stable")
        segments = to_frames(given[order, :2], rate)
        tious = frame_tiou(to_frames(truth[video], rate), segments)  # (G, P)
        running = np.maximum.accumulate(tious, axis=1)
        within = np.concatenate([np.zeros((len(running), 1)), running], axis=1)
        contributed = (len(given) * SHARES).astype(np.int64)  # (100,) cut to whole proposals
        best[row : row + len(running)] = within[:, contributed]
        row += len(running)
    return Thumos14Recall(
        video_ids=tuple(videos),
        instances=np.array([len(truth[video]) for video in videos], dtype=np.int64),
        given=np.array([len(found[video]) for video in videos], dtype=np.int64),
        best_tiou=best,
        ignored_proposals=ignored,
        missing_videos=len(truth) - len(videos),
    )


def to_frames(seconds: Floats, rate: float) -> Floats:
    """Return the nearest whole frames of times in seconds; a tie becomes the even frame."""
    return np.rint(seconds * rate)


def frame_tiou(instances: Floats, segments: Floats) -> Floats:
    """Return (G, P) tIoU of (G, 2) and (P, 2) first and last frames, both of them inside."""
    start = np.maximum(instances[:, None, 0], segments[None, :, 0])
    end = np.minimum(instances[:, None, 1], segments[None, :, 1])
    shared = np.maximum(end - start + 1, 0.0)
    lengths = (instances[:, 1] - instances[:, 0] + 1)[:, None]
    ratio: Floats = shared / (lengths + (segments[:, 1] - segments[:, 0] + 1) - shared)
    return ratio
