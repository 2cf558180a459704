"""The proposals stage: candidates (PGM), their evaluation (PEM), Soft-NMS and labels."""

from actionspan.lazy import lazy

_MODULES = {
    "ProposalEvaluator": "actionspan.proposals.evaluator",
    "SegmentClassifier": "actionspan.proposals.segment_classifier",
    "bsp_features": "actionspan.proposals.pgm",
    "generate_candidates": "actionspan.proposals.pgm",
    "group_actionness": "actionspan.proposals.grouping",
    "propose_video": "actionspan.proposals.evaluator",
    "soft_nms": "actionspan.proposals.suppression",
    "temporal_iou": "actionspan.arrays",
    "train_classifier": "actionspan.proposals.classifier_training",
}
__all__ = list(_MODULES)
__getattr__ = lazy(__name__, _MODULES)
