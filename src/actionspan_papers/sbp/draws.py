"""How near sampled gradients come to the full one: many draws of each sampler at once.

A snippet's gradient of all parameters is as long as the encoder is large; kept for each snippet of
a video it would be gigabytes. Everything that is asked of them here (lengths, cosines, the error of
any weighted sum) follows from their scalar products. A sum over parameters is a sum over blocks, so
the gradients of one block at a time are enough: (T, its parameters).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from actionspan.arrays import Float64
from actionspan.memory.sampling import Sampler, sample_rows

_COLUMNS = 2**16  # that are turned into float64 at a time


@dataclass(frozen=True, kw_only=True)
class BlockGram:
    """The scalar products (T, T) of what T snippets have in one block."""

    activations: Float64
    """Of what comes out of the block."""
    activation_gradients: Float64
    """Of the gradients of the loss by what comes out."""
    parameter_gradients: Float64
    """Of the gradients of the loss by the block's parameters, through one snippet each."""


def block_grams(
    blocks: Sequence[nn.Module], inputs: Tensor, feature_gradients: Tensor
) -> list[BlockGram]:
    """Return the products of each block of a chain, from the bottom to the top.

    Each block is run again on one snippet at a time, with a graph: memory holds what passes between
    blocks, one block's graph for one snippet, and one block's gradients of all.

    Args:
        blocks: Modules that do, one after the other, what the encoder does. Snippets must not meet
            in them: norms in evaluation mode.
        inputs: (T, …) what the first takes.
        feature_gradients: (T, C) gradients of the loss by what the last returns.

    Raises:
        ValueError: There is no block, or the gradients do not fit what comes out.
    """
    if not blocks:
        raise ValueError("0 blocks: 1 at least")
    between = [inputs]
    with torch.no_grad():
        for block in blocks:
            between.append(block(between[-1]))
    if between[-1].shape != feature_gradients.shape:
        shapes = f"{tuple(feature_gradients.shape)} of features {tuple(between[-1].shape)}"
        raise ValueError(f"gradients {shapes}: the same shape")
    found, gradients = [], feature_gradients
    for block, below, above in zip(blocks[::-1], between[-2::-1], between[:0:-1], strict=True):
        passed, own = _through(block, below, gradients)
        found.append(
            BlockGram(
                activations=products(above),
                activation_gradients=products(gradients),
                parameter_gradients=products(own),
            )
        )
        gradients = passed
    return found[::-1]


def _through(block: nn.Module, below: Tensor, gradients: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients by what goes in (T, …) and by the parameters (T, P)."""
    parameters = [each for each in block.parameters() if each.requires_grad]
    count = sum(each.numel() for each in parameters)
    passed, own = torch.empty_like(below), below.new_empty(len(below), count)
    for row in range(len(below)):
        one = below[row : row + 1].detach().requires_grad_()
        wanted = gradients[row : row + 1]
        first, *rest = torch.autograd.grad(block(one), [one, *parameters], wanted)
        passed[row] = first[0]
        if rest:
            torch.cat([each.flatten() for each in rest], out=own[row])
    return passed, own


def products(rows: Tensor) -> Float64:
    """Return the (T, T) scalar products of rows (T, …), summed in float64."""
    flat = rows.detach().reshape(len(rows), -1)
    total = np.zeros((len(rows), len(rows)))
    for first in range(0, flat.shape[1], _COLUMNS):
        part = flat[:, first : first + _COLUMNS].double().cpu().numpy()
        total += part @ part.T
    return total


def cosines(gram: Float64) -> Float64:
    """Return the (T, T) cosines that belong to scalar products; NaN where a row is 0."""
    lengths = np.sqrt(np.diag(gram))
    both = np.outer(lengths, lengths)
    found: Float64 = np.divide(gram, both, out=np.full_like(gram, np.nan), where=both > 0)
    return found


def apart(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which of (T, T) pairs are neighbours, and which half of the video or more apart."""
    distance = np.subtract.outer(np.arange(count), np.arange(count))
    return distance == 1, 2 * distance >= max(count, 4)


def sampled(gram: Float64, weights: Float64) -> tuple[Float64, Float64]:
    """Return how near weighted sums of gradients come to the sum of all.

    Args:
        gram: (T, T) scalar products of the T gradients.
        weights: (D, T) of D draws, 0 for what a draw leaves out.

    Returns:
        (D,) cosines with the sum of all gradients, and (D,) squared errors ÷ its squared length;
        NaN where a sum is 0.
    """
    squared = float(gram.sum())
    error = weights - 1
    lengths = np.einsum("dt,ts,ds->d", weights, gram, weights, optimize=True)
    missed = np.einsum("dt,ts,ds->d", error, gram, error, optimize=True)
    both = np.sqrt(np.clip(lengths, 0, None) * max(squared, 0.0))
    unknown = np.full(len(weights), np.nan)
    cosine = np.divide(weights @ gram.sum(axis=1), both, out=unknown.copy(), where=both > 0)
    relative = missed / squared if squared > 0 else unknown
    return cosine, np.asarray(relative, np.float64)


SAMPLERS: Mapping[Sampler, str] = {
    "uniform_random": "",
    "fixed": "",
    "diverse_feature": "features",
    "diverse_gradient": "gradients",
    "importance": "gradients",
}
"""The samplers that are compared, and whose lengths each of them looks at."""


def draw_weights(
    sampler: Sampler,
    count: int,
    keep_ratio: float,
    draws: int,
    magnitudes: Tensor | None,
    seed: int,
) -> Float64:
    """Return (D, T) the weight of each of T rows in each draw, 0 for a row that is dropped.

    Weights are 1/π, with which the mean over draws is the full gradient; but `fixed` draws nothing,
    and keeps the same rows every time.

    Args:
        sampler: Of `SAMPLERS`.
        count: T.
        keep_ratio: r.
        draws: D; of `fixed` one is enough, and there is one.
        magnitudes: (T,) lengths of features or of gradients, for the samplers that want them.
        seed: Of the draws.
    """
    generator = torch.Generator().manual_seed(seed)
    weights = np.zeros((1 if sampler == "fixed" else draws, count))
    for draw in weights:
        rows, own = sample_rows(sampler, count, keep_ratio, generator, magnitudes=magnitudes)
        draw[rows.numpy()] = own.numpy()
    return weights
