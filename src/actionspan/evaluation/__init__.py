"""Scores and baselines: how good a set of proposals is."""

from actionspan.lazy import lazy

_MODULES = {
    "AverageRecall": "actionspan.evaluation.recall",
    "DetectionPrecision": "actionspan.evaluation.detection",
    "PrecisionByClass": "actionspan.evaluation.detection",
    "Thumos14Recall": "actionspan.evaluation.recall",
    "average_recall_activitynet": "actionspan.evaluation.recall",
    "average_recall_thumos14": "actionspan.evaluation.recall",
    "detection_precision": "actionspan.evaluation.detection",
    "detection_precision_by_class": "actionspan.evaluation.detection",
}
__all__ = list(_MODULES)
__getattr__ = lazy(__name__, _MODULES)
