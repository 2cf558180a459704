"""How near sampled gradients come to the full one: many draws of each sampler at once."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from actionspan.arrays import Float64
from actionspan.memory.sampling import Sampler, sample_rows

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
