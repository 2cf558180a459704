"""The loss of the temporal network: cross entropy in which positives and negatives weigh alike."""

from typing import NamedTuple

import torch
from torch import Tensor

from actionspan.temporal.labels import KINDS

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
