"""Mean average precision of labelled detections, the mean over classes of ActivityNet's evaluator.

Each class has a list of its own, of the detections with its label, matched to its instances alone
by the rule in `evaluation.detection`; the mean over classes gives each the same weight.

As in the official evaluator:

- The classes are those of the instances of the videos that are scored. A class without detections
  has an average precision of 0.
- A detection in a video without an instance of its class is a false alarm.

Points where it breaks off, depends on the machine, or that are settled differently here:

- Detections of other labels are left out and counted; the official evaluator ends with an error.
- Detections of videos outside the ground truth are left out; it counts them as false alarms.
- Detections of equal score keep the order in which they are given; its sort is not stable.
- An instance of no length cannot be found; there, a detection of no length anywhere in the video
  is right, because their tIoU is 0 / 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from actionspan.arrays import Float64, Int64
from actionspan.evaluation.detection import THRESHOLDS, named_scores, pooled_precision
from actionspan.evaluation.rows import check_truth, match_ids, match_proposals

Instances = Sequence[tuple[float, float, str]]
Detections = Sequence[tuple[float, float, float, str]]


@dataclass(frozen=True, kw_only=True)
class PrecisionByClass:
    """Average precision of L classes at tIoU 0.5 … 0.95, and at 0.3 and 0.4."""

    labels: tuple[str, ...]
    average_precision: Float64
    """(L, 12) at `THRESHOLDS`, fractions."""
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
        return named_scores(self.average_precision.mean(axis=0))

    def classes(self) -> dict[str, dict[str, float]]:
        """Return `{label: {"instances", "detections", "AP@0.50", …, "average_AP"}}`."""
        table = {}
        numbers = zip(self.instances.tolist(), self.detections.tolist(), strict=True)
        rows = zip(self.labels, numbers, self.average_precision, strict=True)
        for label, (instances, detections), row in rows:
            values = {name.replace("mAP", "AP"): value for name, value in named_scores(row).items()}
            table[label] = {"instances": instances, "detections": detections, **values}
        return table


def detection_precision_by_class(
    ground_truth: Mapping[str, Instances], detections: Mapping[str, Detections]
) -> PrecisionByClass:
    """Score labelled detections.

    Args:
        ground_truth: Start, end and label of the instances of each video.
        detections: Start, end, score and label of the detections of each video.

    Raises:
        ValueError: A row is reversed or not finite, there is no instance, or two ids of the
            detections mean one video.
    """
    # check all rows, and find the videos
    truth = check_truth({name: [row[:2] for row in rows] for name, rows in ground_truth.items()})
    given = {name: [row[:3] for row in rows] for name, rows in detections.items()}
    _, ignored = match_proposals(given, truth)
    # sort them by class and video
    instances: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for video, named in ground_truth.items():
        for start, end, label in named:
            instances.setdefault(label, {}).setdefault(video, []).append((start, end))
    labels = tuple(sorted(instances))
    listed: dict[str, dict[str, list[tuple[float, float, float]]]] = {name: {} for name in labels}
    unknown = 0
    for name, video in match_ids(detections, truth).items():
        for start, end, score, label in detections[name]:
            if label in listed:
                listed[label].setdefault(video, []).append((start, end, score))
            else:
                unknown += 1
    # score class by class
    none = np.empty((0, 2))
    precision = np.empty((len(labels), len(THRESHOLDS)))
    for place, label in enumerate(labels):
        wanted = {video: np.array(rows, float) for video, rows in instances[label].items()}
        rows = {video: _best_first(rows) for video, rows in listed[label].items()}
        everywhere = {video: none for video in rows} | wanted
        precision[place] = pooled_precision(everywhere, rows)
    return PrecisionByClass(
        labels=labels,
        average_precision=precision,
        instances=_counts(instances, labels),
        detections=_counts(listed, labels),
        videos=len(truth),
        unknown_labels=unknown,
        ignored_detections=ignored,
    )


def _best_first(rows: Sequence[tuple[float, float, float]]) -> Float64:
    table = np.array(rows, float)
    return table[np.argsort(-table[:, 2], kind="stable")]


def _counts(table: Mapping[str, Mapping[str, Sequence[object]]], labels: Sequence[str]) -> Int64:
    return np.array([sum(map(len, table[label].values())) for label in labels], np.int64)
