"""The stages on one video, without the workflow."""

from actionspan.lazy import lazy

_MODULES = {
    "MotionProposer": "actionspan.propose.proposed",
    "Proposed": "actionspan.propose.proposed",
    "Proposer": "actionspan.propose.proposer",
    "load_model": "actionspan.propose.proposer",
}
__all__ = list(_MODULES)
__getattr__ = lazy(__name__, _MODULES)
