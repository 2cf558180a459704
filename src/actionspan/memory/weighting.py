"""The weight of a kept row's gradient, which says what the sampled gradient is on average."""

from typing import Any, Literal

from torch import Tensor
from torch.autograd import Function

from actionspan.memory.sampling import Rows

GradientWeight = Literal["paper", "even", "unbiased"]


def gradient_weights(gradient_weight: GradientWeight, kept: Rows, count: int) -> Tensor:
    """Return the weight of each kept row, (k,) float64.

    With π the probability of a row, k of T rows kept, and g a row's gradient, the mean is

    - `paper`, weight 1: Σ π g (k/T of the full gradient only where all chunks are equal).
    - `even`, (k/T) / π: k/T of the full gradient.
    - `unbiased`, 1 / π: the full gradient.
    """
    if gradient_weight == "paper":
        return kept.weights.new_ones(len(kept.rows))
    if gradient_weight == "even":
        return kept.weights * (len(kept.rows) / count)
    return kept.weights


def weigh(features: Tensor, weights: Tensor) -> Tensor:
    """Return these features, (n, …), whose gradients are multiplied by weights (n,) on the way."""
    if not features.requires_grad or bool((weights == 1).all()):
        return features
    weighed: Tensor = _Weigh.apply(features, weights)  # type: ignore[no-untyped-call]
    return weighed


def weighted(gradient: Tensor, weights: Tensor) -> Tensor:
    """Multiply gradients (n, …) by weights (n,) float64, rounded once to the gradients' type."""
    shape = (-1, *[1] * (gradient.ndim - 1))
    product = gradient * weights.to(gradient.device).reshape(shape)
    return product.to(gradient.dtype)


class _Weigh(Function):
    """The identity, with weights on the gradient."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, weights: Tensor) -> Tensor:
        ctx.save_for_backward(weights)
        return features.view_as(features)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (weights,) = ctx.saved_tensors
        return weighted(gradient, weights), None
