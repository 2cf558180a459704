"""The proposals stage: candidates (PGM), their evaluation (PEM) and Soft-NMS."""

from typing import TYPE_CHECKING, Any

from actionspan.proposals.bsp import bsp_features
from actionspan.proposals.grouping import group_actionness
from actionspan.proposals.overlap import temporal_iou
from actionspan.proposals.pgm import generate_candidates
from actionspan.proposals.ranking import propose_video
from actionspan.proposals.suppression import soft_nms

if TYPE_CHECKING:
    from actionspan.proposals.evaluator import ProposalEvaluator

__all__ = [
    "ProposalEvaluator",
    "bsp_features",
    "generate_candidates",
    "group_actionness",
    "propose_video",
    "soft_nms",
    "temporal_iou",
]


def __getattr__(name: str) -> Any:
    """Import torch only when the one thing that needs it is asked for."""
    if name == "ProposalEvaluator":
        from actionspan.proposals.evaluator import ProposalEvaluator

        return ProposalEvaluator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
