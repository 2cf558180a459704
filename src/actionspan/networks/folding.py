"""Folding of batch norm into the convolution before it, exact up to rounding, and back."""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn


def fold_batch_norms(module: nn.Module) -> int:
    """Fold each batch norm that follows a convolution in the order of registration.

    The encoders here register a norm right after its convolution, in the same parent module; the
    norm is replaced by the identity. Folded weights keep their type, and need no gradient: call
    `requires_grad_()` to train them.

    Returns:
        How many norms were folded.

    Raises:
        ValueError: A norm has no running statistics.
    """
    pairs = list(_pairs(module))
    for _, norm in pairs:
        if module.get_submodule(norm).running_mean is None:
            raise ValueError(f"the norm {norm!r} has no running statistics: it cannot be folded")
    for convolution, norm in pairs:
        _fold(module.get_submodule(convolution), module.get_submodule(norm))  # type: ignore[arg-type]
        parent, _, name = norm.rpartition(".")
        setattr(module.get_submodule(parent), name, nn.Identity())
    return len(pairs)


def unfolded_state(folded: Mapping[str, Tensor], network: nn.Module) -> dict[str, Tensor]:
    """Return the state of a folded network under the names of the network before it was folded.

    A norm gets the convolution's bias, weight 1, mean 0 and variance 1 - eps: loaded and folded
    once more, that gives the same bits in float32. Where a norm has no weight and bias of its own,
    the bias is in its mean, with the other sign.

    Args:
        folded: The state_dict of the folded network.
        network: One that is not folded; its values are not read, so it may be on `meta`.
    """
    state = dict(folded)
    for convolution, norm in _pairs(network):
        bias = state.pop(f"{convolution}.bias")
        module = network.get_submodule(norm)
        assert isinstance(module, nn.BatchNorm2d | nn.BatchNorm3d)
        if network.get_submodule(convolution).bias is not None:
            state[f"{convolution}.bias"] = torch.zeros_like(bias)
        if module.affine:
            state[f"{norm}.weight"] = torch.ones_like(bias)
            state[f"{norm}.bias"] = bias
        state[f"{norm}.running_mean"] = torch.zeros_like(bias) if module.affine else -bias
        state[f"{norm}.running_var"] = torch.full_like(bias, 1 - module.eps)
    return state


def _pairs(module: nn.Module, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the names of each convolution and of the batch norm after it."""
    previous: tuple[str, nn.Module | None] = "", None
    for name, child in module.named_children():
        where = f"{prefix}{name}"
        if isinstance(child, nn.BatchNorm2d | nn.BatchNorm3d) and isinstance(
            previous[1], nn.Conv2d | nn.Conv3d
        ):
            yield previous[0], where
        yield from _pairs(child, f"{where}.")
        previous = where, child


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
    dtype = convolution.weight.dtype
    weight = convolution.weight.double() * scale.reshape(-1, *[1] * (convolution.weight.ndim - 1))
    convolution.weight = nn.Parameter(weight.to(dtype), requires_grad=False)
    convolution.bias = nn.Parameter(shift.to(dtype), requires_grad=False)
