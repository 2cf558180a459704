"""How alike activations are: of two networks over the same examples, of neighbours in time."""

import torch
from torch import Tensor


def linear_cka(first: Tensor, second: Tensor) -> float:
    """Return the linear CKA of two sets of features of the same examples, by unbiased HSIC.

    Kornblith et al. (ICML 2019) with the estimator of Song et al. (JMLR 13, 2012), whose mean is 0
    for independent features whatever their number; a single value may be below 0. It does not
    depend on rotations, shifts and the scale of either.

    Args:
        first: (n, p) features, n at least 4.
        second: (n, q) features of the same examples.

    Raises:
        ValueError: There are fewer than 4 examples, or not as many of both.
    """
    if len(first) != len(second) or len(first) < 4:
        raise ValueError(f"{len(first)} and {len(second)} examples: as many of both, 4 at least")
    one, other = _gram(first), _gram(second)
    norm = _hsic(one, one) * _hsic(other, other)
    return float(_hsic(one, other) / norm.clamp(min=0).sqrt())


def _gram(features: Tensor) -> Tensor:
    """Return the (n, n) products of centred features, without the diagonal."""
    features = features.double()
    features = features - features.mean(dim=0)  # against rounding; HSIC does not depend on it
    return (features @ features.T).fill_diagonal_(0)


def _hsic(one: Tensor, other: Tensor) -> Tensor:
    """Return the unbiased HSIC of two (n, n) products whose diagonals are zero."""
    n = len(one)
    product = (one * other).sum()
    sums = one.sum() * other.sum() / ((n - 1) * (n - 2))
    rows = 2 * (one.sum(dim=0) @ other.sum(dim=0)) / (n - 2)
    return (product + sums - rows) / (n * (n - 3))


def neighbour_cosine(frames: Tensor) -> float:
    """Return the mean cosine of what belongs to each frame and to the next one.

    Frames without any value are left out.

    Args:
        frames: (B, T, P) vectors of each frame.
    """
    cosine = torch.nn.functional.cosine_similarity(frames[:, :-1], frames[:, 1:], dim=2)
    there = (frames.norm(dim=2) > 0).double()
    pairs = there[:, :-1] * there[:, 1:]
    return float((cosine.double() * pairs).sum() / pairs.sum())
