"""The estimator of a gradient: which rows of each part of an encoder have one, with what weight."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Generator, Tensor, nn
from torch.autograd import Function

from actionspan.memory.sampling import (
    BY_GRADIENT,
    BY_MAGNITUDE,
    Rows,
    Sampler,
    check_sampler,
    kept_count,
    sample_rows,
)

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
    """Return these features, (n, …), and multiply their gradients by weights (n,) on the way."""
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


class Level(NamedTuple):
    """The rows (k,), sorted, with a gradient in a part of the encoder, and their weights."""

    rows: Tensor
    weights: Tensor

    def weights_of(self, rows: Tensor) -> Tensor:
        """Return the weights of some of these rows."""
        return self.weights[torch.searchsorted(self.rows, rows)]


@dataclass(frozen=True, kw_only=True)
class Estimator:
    """How rows are drawn.

    With several ratios, one for each part of the encoder from its input to its output, the rows of
    a part are drawn among the drawn rows of the part above it: no gradient then arrives at a row
    that has no graph. The weights of the boundaries that a gradient passes multiply.
    """

    ratios: tuple[float, ...]
    sampler: Sampler
    gradient_weight: GradientWeight

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            ValueError: One is not allowed.
        """
        check_sampler(self.sampler)
        if self.gradient_weight not in get_args(GradientWeight):
            raise ValueError(
                f"gradient_weight is {self.gradient_weight!r}; "
                f"it must be one of {', '.join(get_args(GradientWeight))}"
            )
        for ratio in self.ratios:
            kept_count(1, ratio)
        if list(self.ratios) != sorted(self.ratios):
            raise ValueError(
                f"keep_ratio is {list(self.ratios)}; a part may not keep more rows than the one "
                "after it"
            )

    @property
    def by_feature(self) -> bool:
        """Whether rows are drawn by their features."""
        return self.sampler in BY_MAGNITUDE and not self.by_gradient

    @property
    def by_gradient(self) -> bool:
        """Whether rows are drawn by the gradients of their features."""
        return self.sampler in BY_GRADIENT

    def draw(
        self, count: int, generator: Generator | None, by: Tensor | None = None
    ) -> tuple[Level, ...]:
        """Draw the rows of each part, the first part first.

        Args:
            count: Rows of the video, T.
            generator: Where random numbers come from; None: torch's global generator.
            by: (T, …) features or gradients, for samplers that look at them.
        """
        grid = (count, 1, 1) if self.sampler == "checkerboard" else None
        magnitudes = None if by is None else _norms(by)
        top = sample_rows(
            self.sampler, count, self.ratios[-1], generator, magnitudes=magnitudes, grid=grid
        )
        levels = [Level(top.rows, gradient_weights(self.gradient_weight, top, count))]
        for ratio in reversed(self.ratios[:-1]):
            above = levels[0].rows
            part = kept_count(count, ratio) / len(above)
            here = sample_rows("uniform_random", len(above), part, generator)
            weights = gradient_weights(self.gradient_weight, here, len(above))
            levels.insert(0, Level(above[here.rows], weights))
        return tuple(levels)


def _norms(rows: Tensor) -> Tensor:
    """Return the length of each row; equal lengths where a tensor has no values (meta)."""
    if rows.is_meta:
        return torch.ones(len(rows))
    flat = rows.detach().reshape(len(rows), -1)
    norms: Tensor = torch.linalg.vector_norm(flat, dim=1, dtype=torch.float64)
    return norms


def estimator_of(
    encoder: nn.Module,
    keep_ratio: float | Sequence[float],
    sampler: Sampler,
    gradient_weight: GradientWeight,
) -> Estimator:
    """Return the estimator for an encoder, with the ratios checked against its parts.

    Raises:
        ValueError: A value is not allowed.
    """
    several = isinstance(keep_ratio, Sequence) and not isinstance(keep_ratio, str)
    ratios = tuple(keep_ratio) if isinstance(keep_ratio, Sequence) else (keep_ratio,)
    if not all(isinstance(each, int | float) for each in ratios) or isinstance(keep_ratio, str):
        raise ValueError(f"keep_ratio is {keep_ratio!r}; it must be a number, or a list of them")
    if several:
        parts = len(checked_sequence(encoder))
        if len(ratios) != parts or not ratios:
            raise ValueError(
                f"keep_ratio has {len(ratios)} values for the {parts} parts of the encoder"
            )
    return Estimator(ratios=ratios, sampler=sampler, gradient_weight=gradient_weight)


def checked_sequence(encoder: nn.Module) -> nn.Sequential:
    """Return an encoder that does nothing but run its parts one after another.

    Raises:
        ValueError: It is of another kind, overrides `forward`, or has hooks, which are not called
            where its parts are run one by one.
    """
    if not isinstance(encoder, nn.Sequential) or type(encoder).forward is not nn.Sequential.forward:
        raise ValueError(
            f"keep_ratio is a list, which is for an nn.Sequential, not {type(encoder).__name__}"
        )
    if any((encoder._forward_hooks, encoder._forward_pre_hooks, encoder._backward_hooks)):
        raise ValueError(
            "keep_ratio is a list, which is for an nn.Sequential without hooks: register them on "
            "its parts"
        )
    return encoder
