"""The temporal network: features to probabilities of start, action and end (BSN's TEM and MTN)."""

import importlib
from typing import Any

_MODULES = {
    "BaseTEM": "actionspan.temporal.mtn",
    "MTN": "actionspan.temporal.mtn",
    "boundary_labels": "actionspan.temporal.labels",
    "load_model": "actionspan.temporal.model_file",
    "predict_probabilities": "actionspan.temporal.prediction",
    "weighted_binary_loss": "actionspan.temporal.loss",
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    """Import a public name at its first use, so that labels alone do not import torch."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)
