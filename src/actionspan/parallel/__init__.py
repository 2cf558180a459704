"""Training on many ranks: exchanges of gradients and models for any torch training loop."""

from actionspan.lazy import lazy

_MODULES = {
    "AdaptiveBatch": "actionspan.parallel.model_averaging",
    "CountingCommunicator": "actionspan.parallel.communicator",
    "InProcessAveraging": "actionspan.parallel.model_averaging",
    "ModelAveraging": "actionspan.parallel.model_averaging",
    "ParallelSettings": "actionspan.parallel.settings",
    "ParameterServer": "actionspan.parallel.parameter_server",
    "make_replica": "actionspan.parallel.replica",
    "ring_allreduce": "actionspan.parallel.ring",
}
__all__ = list(_MODULES)
__getattr__ = lazy(__name__, _MODULES)
