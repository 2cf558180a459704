"""Training on many ranks: exchanges of gradients and models for any torch training loop."""

import importlib
from typing import Any

_MODULES = {
    "AdaptiveBatch": "actionspan.parallel.adaptive_batch",
    "CountingCommunicator": "actionspan.parallel.counting",
    "InProcessAveraging": "actionspan.parallel.in_process",
    "ModelAveraging": "actionspan.parallel.model_averaging",
    "ParallelSettings": "actionspan.parallel.settings",
    "ParameterServer": "actionspan.parallel.parameter_server",
    "make_replica": "actionspan.parallel.replica",
    "ring_allreduce": "actionspan.parallel.ring",
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    """Import a public name at its first use, so that settings alone do not import torch."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)
