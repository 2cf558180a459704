"""The losses of the temporal networks: positives and negatives weigh alike.

Of probabilities `boundary_loss`, of the logits of cross-fitted networks (span, stream)
`members_loss`.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from actionspan.temporal.labels import INSIDE, KINDS, PART

_ACTION_WEIGHT = 2.0  # λ of paper 001, equation 1
_RATIO_RANGE = (1.05, 21.0)
EPSILON = 1e-5


def weighted_binary_loss(probability: Tensor, label: Tensor, batch: Tensor | None = None) -> Tensor:
    """Return the balanced cross entropy over all entries together, a scalar.

    With N entries of which P are positive and r = N / P, a positive weighs r / 2 and a negative
    (r / 2) / (r - 1). This equals -½·[mean over positives of log p + mean over negatives of
    log(1 - p)], and log 2 where p = 0.5 everywhere.

    The naive form is NaN where all or no entries are positive. Here P is at least 1, r is held
    within 1.05…21, and 1e-5 is added inside the logarithm; so in a batch with fewer positives than
    one in 21 they count for less than half.

    Args:
        probability: Any shape, values in 0…1.
        label: Same shape; above 0.5 is positive.
        batch: The labels of the full batch where these entries are a share of it. The result is
            then their part of the batch's loss: the parts of all shares add up to it.

    Raises:
        ValueError: The shapes differ or are empty.
    """
    if probability.shape != label.shape or not probability.numel():
        shapes = f"probability {tuple(probability.shape)} and label {tuple(label.shape)}"
        raise ValueError(f"{shapes}: the same shape, not empty")
    # weigh positives and negatives
    probability, label = probability.flatten(), label.flatten()
    positive = (label > 0.5).to(probability.dtype)
    every = positive if batch is None else (batch > 0.5).to(probability.dtype)
    positive_weight, negative_weight = _balance(every.numel(), every.sum())
    weight = positive_weight * positive + negative_weight * (1 - positive)
    logarithms = torch.log(probability + EPSILON), torch.log(1 - probability + EPSILON)
    return _cross_entropy(logarithms, positive, weight, weight).sum() / every.numel()


def _balance(entries: Tensor | int, positives: Tensor) -> tuple[Tensor, Tensor]:
    """Return the weights of a positive and of a negative with which both kinds weigh alike."""
    ratio = (entries / positives.clamp(min=1.0)).clamp(*_RATIO_RANGE)
    return ratio / 2, ratio / 2 / (ratio - 1)


def _cross_entropy(
    logarithms: tuple[Tensor, Tensor], target: Tensor, positive: Tensor, negative: Tensor
) -> Tensor:
    """Return the weighted cross entropy of each entry, from log p and log(1 - p)."""
    likelihood = positive * target * logarithms[0]
    return -(likelihood + negative * (1 - target) * logarithms[1])


class BoundaryLoss(NamedTuple):
    """The loss of a batch and its three parts, scalars."""

    total: Tensor
    start: Tensor
    action: Tensor
    end: Tensor


def boundary_loss(
    probabilities: Tensor, labels: Tensor, batch: Tensor | None = None
) -> BoundaryLoss:
    """Return 2·action + start + end over probabilities (B, T, 3).

    `batch` is as in `weighted_binary_loss`; further columns of labels do not count.
    """
    every = labels if batch is None else batch
    start, action, end = (
        weighted_binary_loss(probabilities[..., kind], labels[..., kind], every[..., kind])
        for kind in range(KINDS)
    )
    return BoundaryLoss(_ACTION_WEIGHT * action + start + end, start, action, end)


def members_loss(logits: Tensor, labels: Tensor, batch: Tensor | None = None) -> BoundaryLoss:
    """Return the sum of the losses of the paths and members of a cross-fitted network.

    It is a sum so that each is trained as it would be alone, its weight decay included; the parts
    are means. A member's loss is over the steps inside the videos that are not of its part.
    Positives and negatives of the full batch weigh alike, and a label y counts as y of a positive
    and 1 - y of a negative.

    Args:
        logits: (P, M, S, T, 3) of P paths of M members.
        labels: (S, T, `labels.COLUMNS`).
        batch: (B, T, `labels.COLUMNS`), see `weighted_binary_loss`.
    """
    every = labels if batch is None else batch
    paths, members = logits.shape[:2]
    member = torch.arange(members)[:, None, None]
    counted, used = (  # (M, B, T), (M, S, T): 1 where a member learns from a step
        rows[..., INSIDE] * (rows[..., PART] != member) for rows in (every, labels)
    )
    steps = counted.sum(dim=(1, 2)).clamp(min=1)  # (M,)
    parts = []
    for kind in range(KINDS):
        positives = (every[..., kind] * counted).sum(dim=(1, 2))
        weights = (weight[:, None, None] for weight in _balance(steps, positives))
        logarithms = logsigmoid(logits[..., kind]), logsigmoid(-logits[..., kind])
        entropy = _cross_entropy(logarithms, labels[..., kind], *weights)  # (P, M, S, T)
        parts.append(((entropy * used).sum(dim=(2, 3)) / steps).mean())
    start, action, end = parts
    total = paths * members * (_ACTION_WEIGHT * action + start + end)
    return BoundaryLoss(total, start, action, end)
