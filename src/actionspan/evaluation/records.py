"""Scores as JSON records, with bootstrap intervals over the videos."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from actionspan.arrays import Float64
from actionspan.evaluation.detection import DetectionPrecision, PrecisionByClass
from actionspan.evaluation.recall import AVERAGE_NUMBERS, AverageRecall, Thumos14Recall, blocks
from actionspan.evaluation.settings import EvaluationSettings

AR_NUMBERS = (1, 5, 10, 50, 100)
Record = Mapping[str, Any]
_DRAWS = 1 << 20  # of videos, in memory at a time


def evaluation_record(
    method: str, subset: str, result: AverageRecall, settings: EvaluationSettings
) -> dict[str, Any]:
    """Return the scores of ActivityNet's protocol: AR and recall in fractions, AUC in percent."""
    intervals = recall_intervals(result, settings)
    scores = {f"AR@{number}": result.at(number) for number in AR_NUMBERS}
    more = {"AUC": result.auc, "AUC_interval": list(intervals.auc)}
    record = _recall_record("activitynet", method, subset, result, {**scores, **more})
    tious = zip(record["recall"], intervals.recall.T.tolist(), strict=True)
    return {
        **record,
        "AR_interval": intervals.average_recall.tolist(),
        "recall@100_interval": dict(tious),
    }


def thumos14_record(method: str, subset: str, result: Thumos14Recall) -> dict[str, Any]:
    """Return the scores of THUMOS14's protocol, in fractions; AR@ is None beyond the lists.

    `videos` and `instances` are those that take part: videos without proposals do not.
    """
    return _recall_record("thumos14", method, subset, result, result.scores())


def _recall_record(
    protocol: str,
    method: str,
    subset: str,
    result: AverageRecall | Thumos14Recall,
    scores: Mapping[str, Any],
) -> dict[str, Any]:
    recalls = zip(result.thresholds, result.recall.tolist(), strict=True)
    counts = len(result.video_ids), int(result.instances.sum()), result.proposals
    return {
        **_head(protocol, method, subset, counts),
        "videos_without_proposals": result.missing_videos,
        "proposals_left_out": result.ignored_proposals,
        **scores,
        "AN": result.average_numbers.tolist(),
        "AR": result.average_recall.tolist(),
        "recall": {f"{tiou:.2f}": row for tiou, row in recalls},
    }


def _head(protocol: str, method: str, subset: str, counts: tuple[int, int, int]) -> dict[str, Any]:
    """Return the keys that each record begins with."""
    named = zip(("videos", "instances", "proposals"), counts, strict=True)
    return {"method": method, "protocol": protocol, "subset": subset, **dict(named)}


def detection_record(method: str, subset: str, result: DetectionPrecision) -> dict[str, Any]:
    """Return the scores of detections of one class, in fractions."""
    head = _head("detection", method, subset, (result.videos, result.instances, result.proposals))
    return {**head, "proposals_left_out": result.ignored_proposals, **result.scores()}


def detection_by_class_record(method: str, subset: str, result: PrecisionByClass) -> dict[str, Any]:
    """Return the scores of labelled detections, in fractions: the means, then each class."""
    proposals = int(result.detections.sum()) + result.unknown_labels
    counts = result.videos, int(result.instances.sum()), proposals
    return {
        **_head("detection_by_class", method, subset, counts),
        "proposals_left_out": result.ignored_detections,
        "unknown_labels": result.unknown_labels,
        **result.scores(),
        "classes": result.classes(),
    }


class Intervals(NamedTuple):
    """Lower and upper ends of percentile intervals."""

    auc: tuple[float, float]  # in percent
    average_recall: Float64  # (2, 100) at AN = 1 … 100
    recall: Float64  # (2, K) at AN = 100 and each tIoU


def recall_intervals(result: AverageRecall, settings: EvaluationSettings) -> Intervals:
    """Return the percentile bootstrap intervals of AUC and of both recall curves.

    Videos are resampled; a curve's interval is of each of its points alone. Each video keeps
    the budgets it has in the full set. Where all videos have equally many proposals (the common
    case) that is exact; where they do not, a resample would shift all budgets a little, and this
    part of the variation is left out.
    """
    # All are ratios of two sums over videos: found instances, or areas under curves, and instances.
    areas = np.empty(len(result.hits))  # (I,)
    for rows in blocks(len(areas)):
        under = np.trapezoid(result.hits[rows], AVERAGE_NUMBERS, axis=1)
        areas[rows] = 100 * under / AVERAGE_NUMBERS[-1]
    found = (result.best_tiou[:, -1:] >= result.thresholds).astype(np.float64)  # (I, K)
    numbers = result.hits.shape[1]
    summed = [areas[:, None], result.hits, found]
    sums = np.hstack([result.sums_by_video(each) for each in summed])  # (V, 1 + 100 + K)
    videos = len(sums)
    generator = np.random.default_rng(settings.seed)
    curves = np.empty((settings.resamples, sums.shape[1]))
    together = max(1, _DRAWS // videos)
    for first in range(0, settings.resamples, together):
        chosen = curves[first : first + together]
        drawn = generator.integers(videos, size=(len(chosen), videos))
        drawn += videos * np.arange(len(chosen))[:, None]
        counts = np.bincount(drawn.ravel(), minlength=drawn.size).reshape(drawn.shape)
        chosen[:] = counts @ sums / (counts @ result.instances)[:, None]
    ends = [(1 - settings.confidence) / 2, (1 + settings.confidence) / 2]
    bands = np.quantile(curves, ends, axis=0)
    low, high = bands[:, 0].tolist()
    return Intervals((low, high), bands[:, 1 : 1 + numbers], bands[:, 1 + numbers :])


AR_AGAINST_AN = "AR vs AN"
RECALL_AGAINST_TIOU = "recall vs tIoU at AN=100"
AREA = "AUC"
PANELS = (
    (AR_AGAINST_AN, "Average recall", "average number of proposals (AN)"),
    (RECALL_AGAINST_TIOU, "Recall at AN = 100", "tIoU threshold"),
)
"""Kind, title and the label of x of each panel of a figure."""


class Curve(NamedTuple):
    """The points of a curve as fractions; `low` and `high` are the interval of each."""

    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


def curves_of(record: Record) -> dict[str, Curve]:
    """Return a method's curves by kind; the curve of AUC is a point at x = 100."""
    recall, intervals = record["recall"], record["recall@100_interval"]
    low, high = zip(*(intervals[tiou] for tiou in recall), strict=True)
    area = [[percent / 100] for percent in (record["AUC"], *record["AUC_interval"])]
    return {
        AR_AGAINST_AN: Curve(record["AN"], record["AR"], *record["AR_interval"]),
        RECALL_AGAINST_TIOU: Curve(
            list(map(float, recall)), [recalls[-1] for recalls in recall.values()], low, high
        ),
        AREA: Curve([100.0], *area),
    }
