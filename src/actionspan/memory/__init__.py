"""The engine of stochastic backpropagation (SBP): end-to-end training within a memory budget.

It knows tensors and modules, and nothing of video.
"""

from actionspan.lazy import lazy

_MODULES = {
    "StochasticBackward": "actionspan.memory.ways",
    "plan_memory": "actionspan.memory.planning",
    "sample_rows": "actionspan.memory.sampling",
    "saved_bytes": "actionspan.memory.counting",
}
__all__ = list(_MODULES)
__getattr__ = lazy(__name__, _MODULES)
