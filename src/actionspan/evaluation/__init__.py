"""Scores, baselines and figures: how good a set of proposals is."""

from actionspan.evaluation.activitynet import AverageRecall, average_recall_activitynet

__all__ = ["AverageRecall", "average_recall_activitynet"]
