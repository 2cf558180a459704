"""Which rows of a video keep their backward path, and how likely each was to be kept."""

import math
from typing import Literal, NamedTuple, get_args

import torch
from torch import Generator, Tensor

Sampler = Literal[
    "uniform_random", "fixed", "diverse_feature", "diverse_gradient", "importance", "checkerboard"
]
BY_GRADIENT = ("diverse_gradient", "importance")
BY_MAGNITUDE = ("diverse_feature", *BY_GRADIENT)
_LEAST = 1e-6  # of the largest magnitude: any row may be drawn, so no weight is infinite


class Rows(NamedTuple):
    """The rows that are kept, (k,) sorted int64, and 1 over their probability, (k,) float64."""

    rows: Tensor
    weights: Tensor


def kept_count(count: int, keep_ratio: float) -> int:
    """Return how many of `count` rows are kept: the ratio of them to the nearest, at least 1.

    Raises:
        ValueError: The count is below 1, or the ratio outside (0, 1].
    """
    if count < 1:
        raise ValueError(f"count is {count}; at least 1 row is needed")
    if not 0 < keep_ratio <= 1:
        raise ValueError(f"keep_ratio is {keep_ratio}; it must be above 0 and at most 1")
    return min(count, max(1, math.floor(keep_ratio * count + 0.5)))


def sample_rows(
    sampler: Sampler,
    count: int,
    keep_ratio: float,
    generator: Generator | None = None,
    *,
    magnitudes: Tensor | None = None,
    grid: tuple[int, int, int] | None = None,
) -> Rows:
    """Draw the rows that keep their backward path, exactly `kept_count` distinct ones.

    - `uniform_random`: one row at random in each of k chunks of neighbouring rows (paper 004,
      section 3.2; the chunks are rows ⌊T i / k⌋ … ⌊T (i + 1) / k⌋ - 1).
    - `fixed`: the first row of each of these chunks. It represents the chunk, so its weight is the
      chunk's size; the other rows are never drawn.
    - `diverse_feature`, `diverse_gradient`: the same with chunks of rows sorted by magnitude.
    - `importance`: rows with a probability in proportion to their magnitude, at most 1.
    - `checkerboard`: every m-th diagonal of a grid of tokens, from a random one (table 3).

    Args:
        sampler: One of these names.
        count: Rows of the video, T.
        keep_ratio: The part of them that is kept, above 0 and at most 1.
        generator: Where random numbers come from; None: torch's global generator.
        magnitudes: (T,) lengths of the features (`diverse_feature`) or of the gradients that reach
            them (`diverse_gradient`, `importance`).
        grid: Steps, rows and columns of the tokens, with the product T (`checkerboard`).

    Raises:
        ValueError: An argument is missing or not allowed.
    """
    check_sampler(sampler)
    kept = kept_count(count, keep_ratio)
    if sampler == "checkerboard":
        return _checkerboard(_checked_grid(grid, count), kept, keep_ratio, generator)
    order = torch.arange(count)
    if sampler in BY_MAGNITUDE:
        if magnitudes is None or magnitudes.shape != (count,):
            shape = None if magnitudes is None else tuple(magnitudes.shape)
            raise ValueError(f"{sampler} needs magnitudes of shape ({count},), not {shape}")
        magnitudes = magnitudes.detach().double().cpu()
        if sampler == "importance":
            return _importance(magnitudes, kept, generator)
        order = torch.sort(magnitudes, stable=True).indices
    edges = torch.arange(kept + 1) * count // kept
    sizes = edges.diff()
    places = torch.zeros(kept) if sampler == "fixed" else _uniform(kept, generator) * sizes
    rows, chunks = order[edges[:-1] + places.long()].sort()
    return Rows(rows, sizes.double()[chunks])


def check_sampler(sampler: str) -> None:
    """Check the name of a sampler.

    Raises:
        ValueError: There is none of this name.
    """
    if sampler not in get_args(Sampler):
        raise ValueError(
            f"sampler is {sampler!r}; it must be one of {', '.join(get_args(Sampler))}"
        )


def _uniform(count: int, generator: Generator | None) -> Tensor:
    """Draw numbers from 0 to below 1, (count,) float64 on the host."""
    device = "cpu" if generator is None else generator.device
    return torch.rand(count, generator=generator, dtype=torch.float64, device=device).cpu()


def _importance(magnitudes: Tensor, kept: int, generator: Generator | None) -> Rows:
    """Draw systematically: k points at distance 1 over rows as long as their probability."""
    probabilities = inclusion(magnitudes, kept)
    rows = systematic(probabilities, kept, float(_uniform(1, generator)))
    return Rows(rows, 1 / probabilities[rows])


def inclusion(magnitudes: Tensor, kept: int) -> Tensor:
    """Return probabilities (T,) in proportion to magnitudes, but at most 1, that sum to `kept`.

    All are above 0, and equal where all magnitudes are 0. Where a magnitude is not finite, those
    rows come first: a gradient scaler has to see the overflow.
    """
    if kept == len(magnitudes):
        return torch.ones(len(magnitudes), dtype=torch.float64)
    if not magnitudes.isfinite().all():
        magnitudes = (~magnitudes.isfinite()).double()
    largest = magnitudes.max()
    shares = (magnitudes / largest).clamp(min=_LEAST) if largest > 0 else magnitudes + 1
    # With the j largest at 1, the others share k - j; j is the least for which all are below 1.
    falling, order = torch.sort(shares, descending=True, stable=True)
    rest = falling.flip(0).cumsum(0).flip(0)  # (T,) sums of a share and all after it
    left = kept - torch.arange(len(shares), dtype=torch.float64)
    fits = falling * left < rest * (1 - 1e-12)  # at most 1 with a margin for rounding
    sure = int(fits.int().argmax())
    values = torch.ones_like(falling)
    values[sure:] = falling[sure:] * (left[sure] / rest[sure])
    return torch.empty_like(values).scatter_(0, order, values)


def systematic(probabilities: Tensor, kept: int, start: float) -> Tensor:
    """Return the rows under the points start, start + 1, … of rows laid end to end, sorted.

    Args:
        probabilities: (T,) lengths of the rows, at most 1, that sum to `kept`.
        kept: How many points there are.
        start: The first point, from 0 to below 1.
    """
    sure = probabilities == 1
    others = (~sure).nonzero()[:, 0]
    points = kept - int(sure.sum())
    ends = probabilities[others].cumsum(0)
    if points:
        ends *= points / ends[-1]  # rounding may not leave the last point beyond the end
    hit = torch.searchsorted(ends, start + torch.arange(points, dtype=torch.float64), right=True)
    hit = hit.clamp(max=len(others) - 1)  # as a start next to 1 is rounded up
    return torch.cat([sure.nonzero()[:, 0], others[hit]]).sort().values


def _checked_grid(grid: tuple[int, int, int] | None, count: int) -> tuple[int, int, int]:
    if grid is None or len(grid) != 3 or math.prod(grid) != count or min(grid) < 1:
        raise ValueError(f"checkerboard needs a grid (t, h, w) of {count} tokens, not {grid}")
    return grid


def _checkerboard(
    grid: tuple[int, int, int], kept: int, keep_ratio: float, generator: Generator | None
) -> Rows:
    steps, height, width = (torch.arange(size) for size in grid)
    most = sum(grid) - 2  # diagonals that there are
    classes = max(1, math.floor(min(1 / keep_ratio, most) + 0.5))
    diagonal = steps[:, None, None] + height[:, None] + width  # (t, h, w)
    of_token = diagonal.flatten() % classes  # (T,)
    draws = _uniform(1 + len(of_token), generator)
    turns = (torch.arange(classes) - torch.arange(classes)[:, None]) % classes  # (shift, class)
    shift = int(draws[0] * classes)
    # By class, counted from the shift; at random within a class.
    rows = torch.argsort(turns[shift][of_token] + draws[1:])[:kept].sort().values
    return Rows(rows, 1 / _class_probabilities(of_token, turns, kept)[of_token[rows]])


def _class_probabilities(of_token: Tensor, turns: Tensor, kept: int) -> Tensor:
    """Return how likely a token of each class is kept, the mean over all shifts."""
    sizes = torch.bincount(of_token, minlength=len(turns))  # (class,)
    order = turns.argsort(dim=1)  # (shift, place): the class at each place
    in_order = sizes[order]
    taken = (kept - (in_order.cumsum(1) - in_order)).clamp(min=0).minimum(in_order)
    by_class = torch.zeros_like(taken).scatter_(1, order, taken)
    return by_class.double().mean(0) / sizes.clamp(min=1)
