"""Candidate proposals from boundary probabilities (PGM of BSN)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actionspan.proposals.bsp import bsp_features
from actionspan.proposals.settings import CandidateSettings

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

START, ACTIONNESS, END = 0, 1, 2  # columns of the probabilities


def boundary_bins(probability: ArrayLike, peak_ratio: float) -> Mask:
    """Mark the bins of each video that may be a boundary.

    A bin is marked when it is a strict local maximum (of two neighbours), or when its probability
    exceeds `peak_ratio` times the video's maximum.

    Args:
        probability: (..., T) probabilities of one kind of boundary.
        peak_ratio: A share in 0…1.

    Returns:
        (..., T) mask. The first start and the last end, which are always candidates, are for
        `candidate_bins` to add.
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


def count_candidates(probabilities: ArrayLike, settings: CandidateSettings) -> NDArray[np.int64]:
    """Return how many candidates `generate_candidates` makes of each video.

    Args:
        probabilities: (V, T, 3) probabilities of several videos.
        settings: Which bins are boundaries, and how many pairs to keep.

    Returns:
        (V,) counts.
    """
    starts, ends = candidate_bins(probabilities, settings.peak_ratio)
    starts_before = starts.cumsum(axis=-1) - starts  # (V, T)
    pairs = (starts_before * ends).sum(axis=-1, dtype=np.int64)
    counts: NDArray[np.int64] = np.minimum(pairs, settings.candidates)
    return counts


def generate_candidates(
    probabilities: ArrayLike, settings: CandidateSettings | None = None
) -> tuple[Array, Array]:
    """Pair every start bin with every later end bin and keep the best pairs.

    The score of a pair is p_start · p_end. Pairs of equal score stand in order of their start,
    then of their end.

    Args:
        probabilities: (T, 3) start, actionness and end probabilities of one video, in 0…1.
        settings: Which bins are boundaries, and how many pairs to keep.

    Returns:
        segments: (M, 2) centres of the start and end bins in 0…1 of the video, best first.
        scores: (M, 2) p_start and p_end.

    Raises:
        ValueError: The probabilities are not (T, 3) values in 0…1.
    """
    settings = settings or CandidateSettings()
    values = np.asarray(probabilities, np.float64)
    if values.ndim != 2 or values.shape[1] != 3 or not len(values):
        raise ValueError(f"probabilities: shape {values.shape} is not (T, 3)")
    if not (values.min() >= 0 and values.max() <= 1):
        raise ValueError("probabilities: not all values are numbers in 0…1")
    start_mask, end_mask = candidate_bins(values, settings.peak_ratio)
    starts, ends = start_mask.nonzero()[0], end_mask.nonzero()[0]
    first, last = (starts[:, None] < ends).nonzero()  # in order of start, then end
    pairs = np.stack([starts[first], ends[last]], axis=1)  # (pairs, 2)
    scores = np.stack([values[pairs[:, 0], START], values[pairs[:, 1], END]], axis=1)
    # The float64 product of two float32 values is exact, so that ties are real ties.
    best = np.argsort(-scores[:, 0] * scores[:, 1], kind="stable")[: settings.candidates]
    return (pairs[best] + 0.5) / len(values), scores[best]


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """The candidates of one video as `candidates.h5` holds them, best first.

    `segments` is float32 (M, 2) in 0…1 of the video, `scores` float32 (M, 2) with p_start and
    p_end, `features` float32 (M, 32).
    """

    segments: NDArray[np.float32]
    scores: NDArray[np.float32]
    features: NDArray[np.float32]


def video_candidates(probabilities: ArrayLike, settings: CandidateSettings) -> Candidates:
    """Return one video's candidates with their BSP features.

    Args:
        probabilities: (T, 3) start, actionness and end probabilities, in 0…1.
        settings: Which bins are boundaries, and how many pairs to keep.

    Raises:
        ValueError: The probabilities are not (T, 3) values in 0…1.
    """
    segments, scores = generate_candidates(probabilities, settings)
    return Candidates(
        segments=segments.astype(np.float32),
        scores=scores.astype(np.float32),
        features=bsp_features(np.asarray(probabilities)[:, ACTIONNESS], segments),
    )
