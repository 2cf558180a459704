"""Average precision of a ranked list of snippets: how online detection is scored.

The area under precision against recall as a sum over the thresholds that separate rows: at each
distinct score, the recall that its rows add, times the precision of all rows from there upwards.
Rows of equal score are one group, so their order cannot matter. Nothing is interpolated.
"""

import math

import numpy as np
from numpy.typing import ArrayLike


def average_precision(
    scores: ArrayLike, positive: ArrayLike, weights: ArrayLike | None = None
) -> float:
    """Return the average precision of N scored rows, in (0, 1]; NaN where no row is positive.

    Scores (N,) are finite or infinite, the best highest; `positive` (N,) is true for the rows of
    the class; `weights` (N,) count the rows, 0 times or more, by default once. A bootstrap counts
    the rows of a video as often as it drew the video.

    Raises:
        ValueError: Lengths differ, a score is not a number, or a weight is negative or not finite.
    """
    ranked = np.asarray(scores, np.float64)
    right = np.asarray(positive, bool)
    counts = np.ones(len(ranked)) if weights is None else np.asarray(weights, np.float64)
    if ranked.ndim != 1 or right.shape != ranked.shape or counts.shape != ranked.shape:
        shapes = f"{ranked.shape}, {right.shape} and {counts.shape}"
        raise ValueError(
            f"scores, positive and weights have the shapes {shapes}; each must be (N,)"
        )
    if np.isnan(ranked).any():
        raise ValueError("a score is NaN: a row without a score has no rank")
    if not np.isfinite(counts).all() or (counts < 0).any():
        raise ValueError("a weight is negative or not finite; weights must be at least 0")
    order = np.argsort(-ranked, kind="stable")
    ranked = ranked[order]
    # the last row of each group of equal scores
    last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], len(ranked) > 0))
    hits = np.cumsum(right[order] * counts[order])[last]
    shown = np.cumsum(counts[order])[last]
    if not len(hits) or hits[-1] == 0:
        return math.nan
    precision = np.divide(hits, shown, out=np.zeros_like(hits), where=shown > 0)
    return float((np.diff(hits, prepend=0.0) * precision).sum() / hits[-1])


def mean_average_precision(
    scores: ArrayLike, positive: ArrayLike, weights: ArrayLike | None = None
) -> float:
    """Return the mean over classes of (N, K) scores, classes without a positive row left out.

    `positive` is (N, K), `weights` (N,) as for `average_precision`. NaN where no class has one.
    """
    columns, right = np.asarray(scores, np.float64), np.asarray(positive, bool)
    if columns.ndim != 2 or right.shape != columns.shape:
        shapes = f"{columns.shape} and {right.shape}"
        raise ValueError(f"scores and positive have the shapes {shapes}; both must be (N, K)")
    pairs = zip(columns.T, right.T, strict=True)
    values = np.array([average_precision(*pair, weights) for pair in pairs])
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan
