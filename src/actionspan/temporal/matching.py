"""The boundary-matching map (BMN, 2019): a cell for every pair of a start and a later end.

Row d - 1, column s of the map (T - 1, T) stands for the segment from the middle of step s to the
middle of step s + d. Cells whose end lies beyond the last step are in the map, but stand for
nothing.
"""

from functools import lru_cache

import torch
from torch import Tensor

from actionspan.temporal.instances import tiou

SAMPLES = 16  # of each segment and its surroundings
FINER = 2  # points whose mean is a sample
REACH = 0.5  # of the segment's length, to each side


def cell_steps(steps: int) -> tuple[Tensor, Tensor]:
    """Return the start and end step (T - 1, T) of each cell; ends may be T or more."""
    starts = torch.arange(steps).expand(max(steps - 1, 1), steps)
    return starts, starts + torch.arange(1, len(starts) + 1)[:, None]


def cell_overlaps(instances: Tensor, steps: int) -> Tensor:
    """Return the highest tIoU (B, T - 1, T) of each cell with instances (B, K, 2) in steps.

    It is 0 in cells that stand for nothing.
    """
    starts, ends = cell_steps(steps)
    real = ends < steps
    start, end = starts[real] + 0.5, ends[real] + 0.5  # (M,)
    best = instances.new_zeros(len(instances), *starts.shape)
    overlaps = tiou(start, end, instances[..., :1], instances[..., 1:])  # (B, K, M)
    best[:, real] = overlaps.amax(dim=1)
    return best


@lru_cache(maxsize=4)
def sampling_matrix(steps: int, dtype: torch.dtype) -> Tensor:
    """Return the sparse matrix ((T - 1)·T, SAMPLES·T) that samples a sequence for each cell.

    Row (d - 1)·T + s times SAMPLES sequences of T steps, one after another, is the sum over k of
    sample k of sequence k. Samples divide a segment with `REACH` to each side evenly; each is the
    mean of `FINER` points, linear between steps and 0 beyond the first and last.
    """
    starts, ends = cell_steps(steps)
    cells = (ends < steps).flatten().nonzero()  # (M, 1)
    start, end = starts.flatten()[cells], ends.flatten()[cells]
    count = SAMPLES * FINER
    places = (torch.arange(count, dtype=torch.float64) + 0.5) / count * (1 + 2 * REACH) - REACH
    positions = start + (end - start) * places  # (M, count)
    sample = (torch.arange(count) // FINER).expand(positions.shape)
    before = positions.floor()
    rows, columns, values = [], [], []
    for step, weight in ((before, before + 1 - positions), (before + 1, positions - before)):
        used = (step >= 0) & (step < steps) & (weight > 0)
        rows.append(cells.expand(positions.shape)[used])
        columns.append((sample * steps + step.long())[used])
        values.append(weight[used] / FINER)
    entries = torch.stack([torch.cat(rows), torch.cat(columns)])
    shape = (starts.numel(), SAMPLES * steps)
    weights = torch.cat(values).to(dtype)
    return torch.sparse_coo_tensor(entries, weights, shape, check_invariants=True).coalesce()


def match(maps: Tensor, kernel: Tensor) -> Tensor:
    """Return (B, O, T - 1, T): `kernel` (O, W, SAMPLES) on the samples of maps (B, W, T).

    This is BMN's matching layer and the convolution over its samples. BMN samples first, W maps of
    each cell, and convolves then; both are linear, so that the kernel can come first, on T steps in
    place of T² / 2 cells, with the same result.
    """
    batch, _, steps = maps.shape
    sequences = torch.einsum("owk,bwt->ktbo", kernel, maps).reshape(SAMPLES * steps, -1)
    sampled: Tensor = torch.sparse.mm(
        sampling_matrix(steps, maps.dtype), sequences
    )  # ((T - 1)·T, B·O)
    return sampled.view(-1, steps, batch, len(kernel)).permute(2, 3, 0, 1)
