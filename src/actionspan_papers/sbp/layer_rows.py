"""Rows of each layer of a graph model, drawn so that those of a layer are among the next one's."""

from collections.abc import Sequence

import torch
from torch import Tensor

from actionspan.memory.sampling import Sampler, kept_count, sample_rows


def layer_rows(
    sampler: Sampler,
    count: int,
    keep_ratios: Sequence[float],
    generator: torch.Generator | None = None,
    *,
    grid: tuple[int, int, int] | None = None,
) -> list[Tensor]:
    """Draw rows for each layer, bottom first: those of a layer are among those of the next.

    So no gradient arrives at a node that has no graph. Equal ratios give the same rows.

    Args:
        sampler: `checkerboard` needs `grid`, and equal ratios.
        count: N, the nodes or the frames.
        keep_ratios: Of each layer, none smaller than the one before.
        generator: Of the draws.
        grid: (t, h, w) of the nodes.

    Returns:
        (k,) int64 rows of each layer, sorted.

    Raises:
        ValueError: A ratio is smaller than the one of the layer below.
    """
    if list(keep_ratios) != sorted(keep_ratios):
        raise ValueError(f"keep ratios {list(keep_ratios)}: from the bottom up none may be smaller")
    if sampler == "checkerboard" and len(set(keep_ratios)) > 1:
        raise ValueError("keep ratios by layer: checkerboard has the same nodes in all layers")
    drawn: list[Tensor] = []  # top first
    for ratio in reversed(keep_ratios):
        wanted = kept_count(count, ratio)
        if not drawn:
            rows = sample_rows(sampler, count, ratio, generator, grid=grid).rows
        elif wanted == len(drawn[-1]):
            rows = drawn[-1]
        else:
            among = len(drawn[-1])
            rows = drawn[-1][sample_rows(sampler, among, wanted / among, generator).rows]
        drawn.append(rows)
    return drawn[::-1]
