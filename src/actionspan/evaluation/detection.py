"""Mean average precision of proposals as detections of one class, by ActivityNet's matching rule.

All proposals of all videos stand in one list, best score first. Each is matched to the instance
of its video that no better one has, with the highest tIoU, if that reaches the threshold; else it
is a false alarm. Average precision is the area under precision against recall, with precision at
a recall the best that is reached there or further on (as Pascal VOC since 2010).

Points settled here:

- There is one class, action, so that a mean over classes is the value of this one.
- Proposals of equal score keep the order in which they are given, and of two instances with
  equal tIoU the later one is matched, as the official evaluator's sort does.
- Proposals of videos without an instance are false alarms. Those of videos that are not in the
  ground truth are left out: the official evaluator counts them, but a file of proposals for a
  whole data set is no worse for the videos of its other subsets.
- An instance of no length cannot be found and stays in the denominator.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actionspan.evaluation.activitynet import TIOU_THRESHOLDS, tiou
from actionspan.evaluation.rows import Floats, check_truth, match_proposals

THRESHOLDS: Floats = np.concatenate([TIOU_THRESHOLDS, [0.3, 0.4]])


@dataclass(frozen=True, kw_only=True)
class DetectionPrecision:
    """Average precision at tIoU 0.5 … 0.95, and 0.3 and 0.4, and of how much."""

    average_precision: Floats
    """(12,) at `THRESHOLDS`, fractions."""
    videos: int
    """How many videos the ground truth has, those without an instance too."""
    instances: int
    """How many instances they have."""
    proposals: int
    """How many proposals were given for these videos."""
    ignored_proposals: int
    """How many were left out because their video is not among these."""

    def scores(self) -> dict[str, float]:
        """Return `{"mAP@0.50": …, …, "average_mAP": …}`; the average is over 0.5:0.05:0.95."""
        at = zip(THRESHOLDS, self.average_precision.tolist(), strict=True)
        named = {f"mAP@{threshold:.2f}": value for threshold, value in at}
        average = float(self.average_precision[: len(TIOU_THRESHOLDS)].mean())
        return {**named, "average_mAP": average}


def detection_precision(
    ground_truth: Mapping[str, ArrayLike], proposals: Mapping[str, ArrayLike]
) -> DetectionPrecision:
    """Score proposals as detections of one class.

    Args:
        ground_truth: For each video id of one subset, (G, 2) starts and ends, start <= end.
        proposals: For each video id, (P, 3) start, end and score, in any order, start <= end.

    Raises:
        ValueError: A row is reversed or not finite, there is no instance at all, or two ids of
            the proposals mean one video.
    """
    truth = check_truth(ground_truth)
    found, ignored = match_proposals(proposals, truth)
    right = [np.zeros((0, len(THRESHOLDS)), dtype=bool)]  # (P, 12) a video, in the order given
    for video, given in found.items():
        order = np.argsort(-given[:, 2], kind="stable")
        matched = np.zeros((len(given), len(THRESHOLDS)), dtype=bool)
        matched[order] = match_greedily(tiou(given[order, :2], truth[video]), THRESHOLDS)
        right.append(matched)
    scores = np.concatenate([np.empty(0), *(given[:, 2] for given in found.values())])
    instances = sum(map(len, truth.values()))
    best_first = np.concatenate(right)[np.argsort(-scores, kind="stable")]  # (N, 12)
    return DetectionPrecision(
        average_precision=np.array([average_precision(row, instances) for row in best_first.T]),
        videos=len(truth),
        instances=instances,
        proposals=len(scores),
        ignored_proposals=ignored,
    )


def match_greedily(tious: Floats, thresholds: Floats) -> NDArray[np.bool_]:
    """Return which proposals of one video are right at each threshold.

    Args:
        tious: (P, G) of proposals, best score first, with instances.
        thresholds: (T,) least tIoU of a match.

    Returns:
        (P, T) whether the proposal is matched to an instance of its own.
    """
    right = np.zeros((len(tious), len(thresholds)), dtype=bool)
    near = np.flatnonzero((tious >= thresholds.min()).any(axis=1))  # the others match nothing
    values = tious[near, ::-1]  # (N, G) the last instance first, which wins a tie
    free = values >= thresholds[:, None, None]  # (T, N, G) pairs that may still be matched
    # A round matches, at each threshold, the best proposal that can be; there are at most G. One
    # that can be matched to nothing cannot be so later, since no instance becomes free again.
    for _ in range(min(values.shape)):
        can = np.asarray(free.any(axis=2))  # (T, N)
        left = np.flatnonzero(can.any(axis=1))
        if not len(left):
            break
        first = can[left].argmax(axis=1)
        instance = np.where(free[left, first], values[first], -1.0).argmax(axis=1)
        right[near[first], left] = True
        free[left, first] = False
        free[left, :, instance] = False
    return right


def average_precision(right: NDArray[np.bool_], instances: int) -> float:
    """Return the area under precision against recall.

    Args:
        right: (N,) whether each proposal is right, best score first.
        instances: How many there are to find, 1 or more.
    """
    ranks = np.flatnonzero(right) + 1.0
    # Precision is highest where a right one was just added; elsewhere recall does not change.
    precision = np.arange(1, len(ranks) + 1) / ranks
    envelope = np.maximum.accumulate(precision[::-1])
    return float(envelope.sum()) / instances
