"""The engine of pipeline parallelism over time (PARTIME): stages that work on successive samples.

It knows tensors and modules, and nothing of video.
"""

from actionspan.lazy import lazy

_MODULES = {
    "Answer": "actionspan.streaming.messages",
    "Pipeline": "actionspan.streaming.pipeline",
    "StageError": "actionspan.streaming.errors",
    "StallError": "actionspan.streaming.errors",
    "balance_stages": "actionspan.streaming.balance",
    "stage_bytes": "actionspan.streaming.balance",
}
__all__ = list(_MODULES)
__getattr__ = lazy(__name__, _MODULES)
