"""Multinomial logistic regression with an L2 penalty, fitted to the only optimum it has."""

import numpy as np
import torch

from actionspan.arrays import Float64, Int64
from actionspan.running.determinism import deterministic

_STEPS = 100  # of L-BFGS, at most
_GRADIENT = 1e-5  # the largest entry that still counts as the optimum


def fit_softmax(
    features: Float64,
    classes: Int64,
    count: int,
    penalty: float,
    start: Float64 | None = None,
) -> Float64:
    """Return the coefficients (K, D + 1) of the classes, the intercept last.

    They minimise the mean cross-entropy + penalty / 2 · |coefficients|², without
    the intercepts. Features should be of similar scale, since the penalty treats them alike.

    Args:
        features: (N, D).
        classes: (N,) in 0…K − 1.
        count: K.
        penalty: Above 0.
        start: Coefficients to start from, e.g. those of a stronger penalty.
    """
    rows, columns = features.shape
    with deterministic(threads=1):
        inputs, targets = torch.from_numpy(features), torch.from_numpy(classes)
        first = np.zeros((count, columns + 1)) if start is None else start
        coefficients = torch.tensor(first, requires_grad=True)
        optimiser = torch.optim.LBFGS(
            [coefficients],
            max_iter=_STEPS,
            tolerance_grad=_GRADIENT,
            tolerance_change=0,
            history_size=20,
            line_search_fn="strong_wolfe",
        )

        def loss() -> torch.Tensor:
            optimiser.zero_grad()
            logits = inputs @ coefficients[:, :-1].T + coefficients[:, -1]  # (N, K)
            total = torch.nn.functional.cross_entropy(logits, targets)
            total = total + penalty / 2 * coefficients[:, :-1].square().sum()
            total.backward()  # type: ignore[no-untyped-call]
            return total

        optimiser.step(loss)  # type: ignore[no-untyped-call]
        fitted: Float64 = coefficients.detach().numpy()
    return fitted


def softmax_scores(features: Float64, coefficients: Float64) -> Float64:
    """Return the probabilities (N, K) of the classes of (N, D) features; each row adds up to 1.

    The order of the sums does not depend on the number of threads, as that of BLAS would.
    """
    weights = np.ascontiguousarray(coefficients[:, :-1])
    logits = np.einsum("nd,kd->nk", features, weights, optimize=False) + coefficients[:, -1]
    powers = np.exp(logits - logits.max(axis=1, keepdims=True, initial=-np.inf))
    scores: Float64 = powers / powers.sum(axis=1, keepdims=True)
    return scores
