"""Scores, baselines and figures: how good a set of proposals is."""

from actionspan.evaluation.activitynet import AverageRecall, average_recall_activitynet
from actionspan.evaluation.detection import DetectionPrecision, detection_precision
from actionspan.evaluation.detection_by_class import (
    PrecisionByClass,
    detection_precision_by_class,
)
from actionspan.evaluation.thumos14 import Thumos14Recall, average_recall_thumos14

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
