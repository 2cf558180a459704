"""Mean average precision of proposals as detections, by ActivityNet's matching rule.

All proposals of all videos are in one list, best score first. Each is matched to the instance of
its video with the highest tIoU among those that no better proposal has, if that tIoU reaches the
threshold; else it is a false alarm. Average precision is the area under precision against recall,
with precision at a recall the best that is reached there or further on (as Pascal VOC since 2010).

Proposals are scored as one class, action, or by their labels: then each class has its own list,
matched to its own instances, and the mean over classes gives each the same weight.

As in the official evaluator:

- The classes are the labels of the instances of the scored videos; one without detections has an
  average precision of 0.
- A detection in a video without an instance (of its class) is a false alarm.
- Of two instances with equal tIoU the later is matched.

Settled differently here, or where it breaks off or depends on the machine:

- Proposals of videos outside the ground truth are left out: a file for a complete data set should
  not lose by the videos of its other subsets. The official evaluator counts them as false alarms.
- Detections of unknown labels are left out and counted; the official evaluator ends with an error.
- Proposals of equal score keep the order in which they are given; its sort is not stable.
- An instance of no length cannot be found and stays in the denominator; there, a detection of no
  length anywhere in the video is right, because their tIoU is 0 / 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actionspan.arrays import Float64, Int64
from actionspan.evaluation.recall import DETECTION_THRESHOLDS, TIOU_THRESHOLDS, tiou
from actionspan.evaluation.rows import check_truth, match_ids, match_proposals
from actionspan.storage.scratch import ScratchRows


@dataclass(frozen=True, kw_only=True)
class DetectionPrecision:
    """Average precision at tIoU 0.5 … 0.95, and at 0.3 and 0.4."""

    average_precision: Float64
    """(12,) at `DETECTION_THRESHOLDS`, fractions."""
    videos: int
    """How many videos the ground truth has, also without an instance."""
    instances: int
    proposals: int
    """How many proposals are given for these videos."""
    ignored_proposals: int
    """How many proposals are left out because their video is not in the ground truth."""

    def scores(self) -> dict[str, float]:
        """Return `{"mAP@0.50": …, …, "average_mAP": …}`; the average is over 0.5:0.05:0.95."""
        return _named_scores(self.average_precision)


def detection_precision(
    ground_truth: Mapping[str, ArrayLike], proposals: Mapping[str, ArrayLike]
) -> DetectionPrecision:
    """Score proposals as detections of one class.

    Arguments and errors are as in `average_recall_activitynet`.
    """
    truth = check_truth(ground_truth)
    matched, ignored = match_proposals(proposals, truth)
    return DetectionPrecision(
        average_precision=pooled_precision(truth, matched),
        videos=len(truth),
        instances=sum(map(len, truth.values())),
        proposals=sum(map(len, matched.values())),
        ignored_proposals=ignored,
    )


def _named_scores(average_precision: Float64) -> dict[str, float]:
    """Return (12,) at `DETECTION_THRESHOLDS` by name, and the average over 0.5:0.05:0.95."""
    at = zip(DETECTION_THRESHOLDS, average_precision.tolist(), strict=True)
    named = {f"mAP@{threshold:.2f}": value for threshold, value in at}
    return {**named, "average_mAP": float(average_precision[: len(TIOU_THRESHOLDS)].mean())}


def pooled_precision(truth: Mapping[str, Float64], proposals: Mapping[str, Float64]) -> Float64:
    """Return the (12,) average precision at `DETECTION_THRESHOLDS` of all videos' proposals.

    `truth` has (G, 2) starts and ends of instances, also of videos without any. `proposals` has
    (P, 3) start, end and score, best first, of videos in `truth`; proposals of equal score are in
    the order of the videos.
    """
    # score, place in all lists, whether it is right at each threshold
    found = ScratchRows(2 + len(DETECTION_THRESHOLDS))
    end = 0
    for video, rows in proposals.items():
        begin, end = end, end + len(rows)
        right = match_greedily(tiou(rows[:, :2], truth[video]), DETECTION_THRESHOLDS)
        some = np.flatnonzero(right.any(axis=1))
        found.append(np.column_stack([rows[some, 2], begin + some, right[some]]))
    table = found.array()
    best_first = np.argsort(-table[:, 0], kind="stable")
    ranks = _ranks(proposals, table[best_first, :2])
    instances = sum(map(len, truth.values()))
    columns = (column[best_first] > 0 for column in table[:, 2:].T)
    return np.array([average_precision(ranks[right], instances) for right in columns])


def _ranks(proposals: Mapping[str, Float64], chosen: Float64) -> Int64:
    """Return the ranks (M,), from 1, of the `chosen` proposals among all, the best score first.

    They are (M, 2) scores and places in the lists of all videos, best first, equal scores in the
    order of their places. Only right proposals need a rank, and they are few: all scores
    are counted, not sorted.
    """
    negated, places = -chosen[:, 0], chosen[:, 1]
    # how many of all stand between the chosen one before, or are it, and each chosen one
    between = np.zeros(len(chosen) + 1, np.int64)
    end = 0
    for rows in proposals.values():
        begin, end = end, end + len(rows)
        given = -rows[:, 2]
        first = np.searchsorted(negated, given, side="left")
        after = np.searchsorted(negated, given, side="right")
        for row in np.flatnonzero(first < after):  # equal scores: by their places
            equal = slice(first[row], after[row])
            after[row] = first[row] + np.searchsorted(places[equal], begin + row, side="right")
        np.add.at(between, after, 1)
    ranks: Int64 = np.cumsum(between)[:-1] + 1
    return ranks


def match_greedily(tious: Float64, thresholds: Float64) -> NDArray[np.bool_]:
    """Return (P, T) whether each proposal is matched to an instance that no better one has.

    `tious` (P, G) are of one video's proposals, best score first, with its instances, and
    `thresholds` (T,) are the least tIoU of a match.
    """
    right = np.zeros((len(tious), len(thresholds)), dtype=bool)
    near = np.flatnonzero((tious >= thresholds.min()).any(axis=1))  # the others match nothing
    values = tious[near, ::-1]  # (N, G) the last instance first, which wins a tie
    free = values >= thresholds[:, None, None]  # (T, N, G) pairs that may still be matched
    # A round matches, at each threshold, the best proposal that can be; there are at most G. A
    # proposal that matches nothing now never will, since no instance becomes free again.
    for _ in range(min(values.shape)):
        can = np.asarray(free.any(axis=2))  # (T, N)
        levels = np.flatnonzero(can.any(axis=1))
        if not len(levels):
            break
        first = can[levels].argmax(axis=1)
        instance = np.where(free[levels, first], values[first], -1.0).argmax(axis=1)
        right[near[first], levels] = True
        free[levels, first] = False
        free[levels, :, instance] = False
    return right


def average_precision(ranks: Int64, instances: int) -> float:
    """Return the area under precision against recall of one or more instances.

    `ranks` (R,) are of the right proposals, rising from 1 for the one of the best score.
    """
    # Precision is highest where a right proposal was just added; elsewhere recall does not change.
    precision = np.arange(1, len(ranks) + 1) / ranks
    envelope = np.maximum.accumulate(precision[::-1])
    return float(envelope.sum()) / instances


Instances = Sequence[tuple[float, float, str]]
Detections = Sequence[tuple[float, float, float, str]]
_ByClass = dict[str, dict[str, list[list[float]]]]  # rows of each video of each label


@dataclass(frozen=True, kw_only=True)
class PrecisionByClass:
    """Average precision of L classes at tIoU 0.5 … 0.95, and at 0.3 and 0.4."""

    labels: tuple[str, ...]
    average_precision: Float64
    """(L, 12) at `DETECTION_THRESHOLDS`, fractions."""
    instances: Int64
    """(L,) of each class."""
    detections: Int64
    """(L,) of each class, in the videos that are scored."""
    videos: int
    """How many videos the ground truth has, also without an instance."""
    unknown_labels: int
    """How many detections in these videos are left out because no instance has their label."""
    ignored_detections: int
    """How many are left out because their video is not in the ground truth."""

    def scores(self) -> dict[str, float]:
        """Return `{"mAP@0.50": …, …, "average_mAP": …}`; the average is over 0.5:0.05:0.95."""
        return _named_scores(self.average_precision.mean(axis=0))

    def classes(self) -> dict[str, dict[str, float]]:
        """Return `{label: {"instances", "detections", "AP@0.50", …, "average_AP"}}`."""
        columns = (self.instances.tolist(), self.detections.tolist(), self.average_precision)
        table = {}
        for label, instances, detections, row in zip(self.labels, *columns, strict=True):
            values = {
                name.replace("mAP", "AP"): value for name, value in _named_scores(row).items()
            }
            table[label] = {"instances": instances, "detections": detections, **values}
        return table


def detection_precision_by_class(
    ground_truth: Mapping[str, Instances], detections: Mapping[str, Detections]
) -> PrecisionByClass:
    """Score labelled detections.

    Instances are start, end and label of each video; detections have a score before the label.

    Raises:
        ValueError: A row is reversed or not finite, no video has an instance, or two ids of the
            detections mean one video.
    """
    # 1. check all rows, and find the videos
    truth = check_truth({name: [row[:2] for row in rows] for name, rows in ground_truth.items()})
    given = {name: [row[:3] for row in rows] for name, rows in detections.items()}
    _, ignored = match_proposals(given, truth)
    # 2. sort them by class and video
    instances: _ByClass = {}
    for video, named in ground_truth.items():
        for *times, label in named:
            instances.setdefault(label, {}).setdefault(video, []).append(times)
    labels = tuple(sorted(instances))
    listed: _ByClass = {label: {} for label in labels}
    unknown = 0
    for name, video in match_ids(detections, truth).items():
        for *row, label in detections[name]:
            if label in listed:
                listed[label].setdefault(video, []).append(row)
            else:
                unknown += 1
    # 3. score class by class
    precision = np.empty((len(labels), len(DETECTION_THRESHOLDS)))
    for place, label in enumerate(labels):
        rows = {
            video: np.array(sorted(rows, key=lambda row: -row[2]), float)
            for video, rows in listed[label].items()
        }
        wanted = {video: np.array(rows, float) for video, rows in instances[label].items()}
        precision[place] = pooled_precision(dict.fromkeys(rows, np.empty((0, 2))) | wanted, rows)
    return PrecisionByClass(
        labels=labels,
        average_precision=precision,
        instances=_counts(instances, labels),
        detections=_counts(listed, labels),
        videos=len(truth),
        unknown_labels=unknown,
        ignored_detections=ignored,
    )


def _counts(table: _ByClass, labels: Sequence[str]) -> Int64:
    return np.array([sum(map(len, table[label].values())) for label in labels], np.int64)
