"""Folding of batch norm into the convolution before it, exact up to rounding."""

import torch
from torch import nn


def fold_batch_norms(module: nn.Module) -> int:
    """Fold each batch norm that follows a convolution in the order of registration.

    The encoders here register a norm right after its convolution, in the same parent module; the
    norm is replaced by the identity.

    Returns:
        How many norms were folded.
    """
    folded, previous = 0, None
    for name, child in list(module.named_children()):
        if isinstance(child, nn.BatchNorm2d | nn.BatchNorm3d) and isinstance(
            previous, nn.Conv2d | nn.Conv3d
        ):
            _fold(previous, child)
            setattr(module, name, nn.Identity())
            folded += 1
        folded += fold_batch_norms(child)
        previous = child
    return folded


def _fold(convolution: nn.Conv2d | nn.Conv3d, norm: nn.BatchNorm2d | nn.BatchNorm3d) -> None:
    """Move what `norm` does in evaluation mode into the weights of `convolution`, in float64."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    # The norm as a scale and a shift.
    scale = 1 / torch.sqrt(norm.running_var.double() + norm.eps)
    if norm.weight is not None:
        scale = scale * norm.weight.double()
    shift = -norm.running_mean.double() * scale
    if norm.bias is not None:
        shift = shift + norm.bias.double()
    if convolution.bias is not None:
        shift = shift + convolution.bias.double() * scale
    # Both in the convolution.
    weight = convolution.weight.double() * scale.reshape(-1, *[1] * (convolution.weight.ndim - 1))
    convolution.weight = nn.Parameter(weight.float(), requires_grad=False)
    convolution.bias = nn.Parameter(shift.float(), requires_grad=False)
