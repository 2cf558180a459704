"""Scores and baselines: how good a set of proposals is."""

from actionspan.evaluation.detection import (
    DetectionPrecision,
    PrecisionByClass,
    detection_precision,
    detection_precision_by_class,
)
from actionspan.evaluation.recall import (
    AverageRecall,
    Thumos14Recall,
    average_recall_activitynet,
    average_recall_thumos14,
)

__all__ = [
    "AverageRecall",
    "DetectionPrecision",
    "PrecisionByClass",
    "Thumos14Recall",
    "average_recall_activitynet",
    "average_recall_thumos14",
    "detection_precision",
    "detection_precision_by_class",
]
