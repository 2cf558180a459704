"""Candidate proposals from boundary probabilities (PGM of BSN)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actionspan.arrays import Float32, Float64
from actionspan.proposals.bsp import bsp_features
from actionspan.proposals.settings import CandidateSettings

Mask = NDArray[np.bool_]

START, ACTIONNESS, END = 0, 1, 2  # columns of the probabilities


def boundary_bins(probability: ArrayLike, peak_ratio: float) -> Mask:
    """Mark the bins of each video that may be a boundary: (..., T) to (..., T).

    A bin is marked when it is a strict local maximum (of two neighbours), or when its probability
    exceeds `peak_ratio` times the video's maximum. The first start and the last end, which are
    always candidates, are added by `candidate_bins`.
    """
    values = np.asarray(probability, np.float64)
    marked: Mask = values > peak_ratio * values.max(axis=-1, keepdims=True, initial=0)
    inner = values[..., 1:-1]
    marked[..., 1:-1] |= (inner > values[..., :-2]) & (inner > values[..., 2:])
    return marked


def candidate_bins(probabilities: ArrayLike, peak_ratio: float) -> tuple[Mask, Mask]:
    """Mark the start and end bins of each video: (..., T, 3) probabilities to two (..., T)."""
    values = np.asarray(probabilities)
    starts = boundary_bins(values[..., START], peak_ratio)
    ends = boundary_bins(values[..., END], peak_ratio)
    starts[..., :1] = True
    ends[..., -1:] = True
    return starts, ends


def count_candidates(probabilities: ArrayLike, settings: CandidateSettings) -> int:
    """Return how many candidates `generate_candidates` makes of a video's (T, 3) probabilities."""
    values = np.asarray(probabilities, np.float64)  # as there, so that ties are the same
    starts, ends = candidate_bins(values, settings.peak_ratio)
    before = np.concatenate([[0], starts.cumsum()])  # (T + 1,) starts before each bin
    last = ends.nonzero()[0]
    nearest = np.maximum(last - settings.shortest + 1, 0)
    farthest = np.maximum(last - settings.longest, 0) if settings.longest else 0 * last
    pairs = before[nearest] - before[np.minimum(farthest, nearest)]
    return min(int(pairs.sum()), settings.candidates)


def generate_candidates(
    probabilities: ArrayLike, settings: CandidateSettings | None = None
) -> tuple[Float64, Float64]:
    """Pair every start bin with every later end bin that is allowed and keep the best pairs.

    The score of a pair is p_start · p_end. Pairs of equal score are in order of their start, then
    of their end.

    Args:
        probabilities: (T, 3) start, actionness and end probabilities of one video, in 0…1.
        settings: Which bins are boundaries, and how many pairs to keep.

    Returns:
        segments: (M, 2) centres of the start and end bins in 0…1 of the video, best first.
        scores: (M, 2) p_start and p_end.

    Raises:
        ValueError: The probabilities are not (T, 3) values in 0…1.
    """
    # check the probabilities
    settings = settings or CandidateSettings()
    values = np.asarray(probabilities, np.float64)
    if values.ndim != 2 or values.shape[1] != 3 or not len(values):
        raise ValueError(f"probabilities: shape {values.shape} is not (T, 3)")
    if not (values.min() >= 0 and values.max() <= 1):
        raise ValueError("probabilities: not all values are numbers in 0…1")
    # pair the boundaries
    start_mask, end_mask = candidate_bins(values, settings.peak_ratio)
    starts, ends = start_mask.nonzero()[0], end_mask.nonzero()[0]
    length = ends - starts[:, None]
    allowed = length >= settings.shortest
    if settings.longest:
        allowed &= length <= settings.longest
    first, last = allowed.nonzero()  # in order of start, then end
    pairs = np.stack([starts[first], ends[last]], axis=1)  # (pairs, 2)
    # keep the best
    scores = np.stack([values[pairs[:, 0], START], values[pairs[:, 1], END]], axis=1)
    # The float64 product of two float32 values is exact, so that ties are real ties.
    best = np.argsort(-scores[:, 0] * scores[:, 1], kind="stable")[: settings.candidates]
    return (pairs[best] + 0.5) / len(values), scores[best]


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """The candidates of one video as `candidates.h5` holds them, best first.

    `segments` is (M, 2) in 0…1 of the video, `scores` (M, 2) with p_start and p_end, `features`
    (M, 32).
    """

    segments: Float32
    scores: Float32
    features: Float32


def video_candidates(probabilities: ArrayLike, settings: CandidateSettings) -> Candidates:
    """Return one video's candidates with their BSP features; see `generate_candidates`."""
    segments, scores = generate_candidates(probabilities, settings)
    return Candidates(
        segments=segments.astype(np.float32),
        scores=scores.astype(np.float32),
        features=bsp_features(np.asarray(probabilities)[:, ACTIONNESS], segments),
    )
