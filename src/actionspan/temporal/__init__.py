"""The temporal network: features to probabilities of start, action and end (BSN's TEM and MTN)."""

from actionspan.lazy import lazy

_MODULES = {
    "BaseTEM": "actionspan.temporal.mtn",
    "MTN": "actionspan.temporal.mtn",
    "boundary_labels": "actionspan.temporal.labels",
    "load_model": "actionspan.temporal.networks",
    "predict_probabilities": "actionspan.temporal.prediction",
    "weighted_binary_loss": "actionspan.temporal.loss",
}
__all__ = list(_MODULES)
__getattr__ = lazy(__name__, _MODULES)
