"""The loss of the temporal networks, and the instances that it is about."""

from typing import NamedTuple

import torch
from torch import Tensor

from actionspan.temporal.labels import AFTER, BEFORE, KINDS

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


ACTION_WEIGHT = 2.0  # λ of paper 001, equation 1
RATIO_RANGE = (1.05, 21.0)
EPSILON = 1e-5


def weighted_binary_loss(
    probability: Tensor, label: Tensor, whole: Tensor | None = None, soft: bool = False
) -> Tensor:
    """Return the balanced cross entropy over all entries together, a scalar.

    With N entries of which P are positive and r = N / P, a positive weighs r / 2 and a negative
    (r / 2) / (r - 1). This equals -½·[mean over positives of log p + mean over negatives of
    log(1 - p)], and log 2 where p = 0.5 everywhere.

    The naive form is NaN where all or no entries are positive. Here P is at least 1, r is held
    within 1.05…21, and 1e-5 is added inside the logarithm; so in a batch with fewer positives than
    one in 21 they count for less than half.

    A soft label y weighs as the positive or negative it is nearer to, and its cross entropy
    -(y·log p + (1 - y)·log(1 - p)) is least at p = y. (With r / 2 on the first half and
    (r / 2) / (r - 1) on the second, p would be drawn well above y where positives are rare, and the
    peak would lose its shape.)

    Args:
        probability: Any shape, values in 0…1.
        label: Same shape; above 0.5 is positive.
        whole: The labels of the full batch where these entries are a share of it. The result is
            then their part of the batch's loss: the parts of all shares add up to it.
        soft: Take labels between 0 and 1 as they are, rather than as the nearer of the two.

    Raises:
        ValueError: The shapes differ or are empty.
    """
    if probability.shape != label.shape or not probability.numel():
        raise ValueError(
            f"probability {tuple(probability.shape)} and label {tuple(label.shape)}: "
            "the same shape, not empty"
        )
    probability = probability.flatten()
    label = label.flatten()
    # weigh positives and negatives
    positive = (label > 0.5).to(probability.dtype)
    every = positive if whole is None else (whole > 0.5).to(probability.dtype)
    ratio = (every.numel() / every.sum().clamp(min=1.0)).clamp(*RATIO_RANGE)
    positive_weight = ratio / 2
    negative_weight = positive_weight / (ratio - 1)
    weight = positive_weight * positive + negative_weight * (1 - positive)
    # sum the weighted cross entropies
    target = label.to(probability.dtype) if soft else positive
    likelihood = weight * target * torch.log(probability + EPSILON)
    likelihood = likelihood + weight * (1 - target) * torch.log(1 - probability + EPSILON)
    return -likelihood.sum() / every.numel()


class BoundaryLoss(NamedTuple):
    """The loss of a batch and its three parts, scalars."""

    total: Tensor
    start: Tensor
    action: Tensor
    end: Tensor


def boundary_loss(
    probabilities: Tensor, labels: Tensor, whole: Tensor | None = None, soft: bool = False
) -> BoundaryLoss:
    """Return 2·action + start + end over probabilities and labels (B, T, 3).

    `whole` and `soft` are those of `weighted_binary_loss`.
    """
    start, action, end = (
        weighted_binary_loss(
            probabilities[..., kind],
            labels[..., kind],
            whole[..., kind] if whole is not None else None,
            soft,
        )
        for kind in range(KINDS)
    )
    return BoundaryLoss(ACTION_WEIGHT * action + start + end, start, action, end)
