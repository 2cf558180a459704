"""Scores, baselines and figures: how good a set of proposals is."""

from actionspan.evaluation.activitynet import AverageRecall, average_recall_activitynet
from actionspan.evaluation.detection import DetectionPrecision, detection_precision
from actionspan.evaluation.thumos14 import Thumos14Recall, average_recall_thumos14

__all__ = [
    "AverageRecall",
    "DetectionPrecision",
    "Thumos14Recall",
    "average_recall_activitynet",
    "average_recall_thumos14",
    "detection_precision",
]
