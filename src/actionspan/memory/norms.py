"""Norms that look at a whole batch: with rows in pieces they would see other batches."""

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm


def refuse_batch_statistics(encoder: nn.Module) -> None:
    """Check that no norm of an encoder uses or collects statistics of its batch.

    The rows of a video are run in several batches, some of them twice.

    Raises:
        ValueError: A norm does.
    """
    for name, module in encoder.named_modules():
        batch = isinstance(module, _BatchNorm) and (module.training or module.running_mean is None)
        collects = (
            isinstance(module, _InstanceNorm) and module.training and module.track_running_stats
        )
        if batch or collects:
            raise ValueError(
                f"the encoder's norm {name or type(module).__name__!r} uses the statistics of a "
                "batch, but rows are run in pieces: freeze it (eval) or fold it into a convolution"
            )
