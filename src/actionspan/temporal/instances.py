"""The instances of videos, read back from what is known of their steps, and their overlaps."""

import torch
from torch import Tensor

from actionspan.temporal.targets import AFTER, BEFORE

_SAME = 0.01  # steps: far above the rounding of distances, far below what tells instances apart


def instances_of(labels: Tensor) -> Tensor:
    """Return the instances (B, K, 2), in steps, of labels (B, T, `targets.COLUMNS`).

    K is that of the row with most, at least 1; rows with fewer are filled up with zeros, which
    overlap nothing. An instance in which no step's middle lies, or only within a shorter one, is
    not among them.
    """
    before, after = labels[..., BEFORE], labels[..., AFTER]  # (B, T)
    middles = torch.arange(labels.shape[1], dtype=labels.dtype) + 0.5
    segments = torch.stack([middles - before, middles + after], dim=2)  # (B, T, 2)
    inside = before > 0
    # of each run of steps in the same instance, the first
    first = inside.clone()
    same = (segments[:, 1:] - segments[:, :-1]).abs().amax(dim=2) < _SAME
    first[:, 1:] &= ~(same & inside[:, :-1])
    most = max(1, int(first.sum(dim=1).max()))
    order = first.to(torch.int8).argsort(dim=1, descending=True, stable=True)[:, :most]  # (B, K)
    found = segments.gather(1, order[..., None].expand(-1, -1, 2))
    return found * first.gather(1, order)[..., None]


def tiou(start: Tensor, end: Tensor, other_start: Tensor, other_end: Tensor) -> Tensor:
    """Return the tIoU of segments given by their starts and ends, which broadcast.

    It is 0 where both have no length.
    """
    shared = torch.minimum(end, other_end) - torch.maximum(start, other_start)
    hull = torch.maximum(end, other_end) - torch.minimum(start, other_start)
    return shared.clamp(min=0) / hull.clamp(min=torch.finfo(hull.dtype).tiny)
