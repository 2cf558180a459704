"""Candidate proposals and their features for the evaluator (PGM and BSP of BSN).

BSP are 32 samples of actionness. Where they lie, for a segment [s, e] of length len = e − s:

| values | region [a, b] | n |
|---|---|---|
| 0…15 | centre [s, e] | 16 |
| 16…23 | start [s − len/5, s + len/5] | 8 |
| 24…31 | end [e − len/5, e + len/5] | 8 |

A region's n grid points are a + k·h, k = 0…n−1, with h = (b − a)/(n − 1): the first and the last
lie on its ends. Value k is the mean of actionness at four finer points round grid point k, at
−h/2, −h/6, +h/6 and +h/2. Actionness is linear between bin centres; outside the video it continues
with bins of zero, so that it falls linearly to zero over the bin beyond each end.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from actionspan.arrays import Float32, Float64, Mask
from actionspan.proposals.settings import CandidateSettings
from actionspan.temporal.labels import ACTIONNESS, END, START

_REGIONS = ((0.0, 1.0, 16), (-0.2, 0.2, 8), (1 - 0.2, 1 + 0.2, 8))  # begin, end, samples
_FINER = np.array([-1 / 2, -1 / 6, 1 / 6, 1 / 2])  # of the grid step
PLACES = np.concatenate(  # (4, 32): the finer samples, as a multiple of the length after the start
    [
        low + (high - low) / (samples - 1) * (np.arange(samples) + _FINER[:, None])
        for low, high, samples in _REGIONS
    ],
    axis=1,
)
FEATURES = PLACES.shape[1]
# Neighbouring grid points share the outer of their finer points, so that 99 of 128 are distinct.
_OUTER, _ENDS = np.unique(PLACES[[0, 3]], return_inverse=True)  # (35,), and (2, 32) rows of it
_POINTS = np.concatenate([_OUTER, PLACES[1], PLACES[2]])
_BLOCK = 500  # segments at once, as their samples take the memory of 1,600 values each


def bsp_features(actionness: ArrayLike, segments: ArrayLike) -> Float32:
    """Return (M, 32) samples of a video's actionness (T,) in and round segments (M, 2) in 0…1."""
    bins = np.asarray(actionness, np.float64)
    # zeros for what lies beyond the right end, and from the last on for what lies before the left
    padded = np.concatenate([[0.0], bins, np.zeros(len(bins) + 4)])
    rise = np.diff(padded)
    within = np.asarray(segments, np.float64).reshape(-1, 2) * len(bins) + 0.5  # in padded bins
    start = within[:, 0]
    length = within[:, 1] - start
    features = np.empty((len(within), FEATURES), np.float32)
    for first in range(0, len(within), _BLOCK):
        block = slice(first, first + _BLOCK)
        # interpolate between the bins before and after, in place
        position = length[block] * _POINTS[:, None]  # (99, block)
        position += start[block]
        floor = np.floor(position)
        before = floor.astype(np.intp)
        position -= floor
        position *= rise.take(before)
        position += padded.take(before)
        outer, *inner = np.split(position, [len(_OUTER), len(_OUTER) + FEATURES])
        total = outer[_ENDS[0]]
        for each in (*inner, outer[_ENDS[1]]):
            total += each
        features[block] = (total / len(PLACES)).T
    return features


def boundary_bins(probability: ArrayLike, peak_ratio: float) -> Mask:
    """Mark the bins of each video that may be a boundary: (..., T) to (..., T).

    A bin is marked when it is a strict local maximum (of two neighbours), or when its probability
    exceeds `peak_ratio` times the video's maximum.
    """
    values = np.asarray(probability, np.float64)
    marked: Mask = values > peak_ratio * values.max(axis=-1, keepdims=True, initial=0)
    inner = values[..., 1:-1]
    marked[..., 1:-1] |= (inner > values[..., :-2]) & (inner > values[..., 2:])
    return marked


def candidate_bins(probabilities: ArrayLike, peak_ratio: float) -> tuple[Mask, Mask]:
    """Mark the start and end bins of each video: (..., T, 3) probabilities to two (..., T).

    The first start and the last end are always among them.
    """
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
    # keep the best
    p_start, p_end = values[starts, START], values[ends, END]
    # The float64 product of two float32 values is exact, so that ties are real ties.
    product = p_start[first] * p_end[last]
    if settings.candidates < len(product):  # choosing the values is faster than sorting all
        least = np.partition(product, -settings.candidates)[-settings.candidates]
        likely = product >= least
        first, last, product = first[likely], last[likely], product[likely]
    best = np.argsort(-product, kind="stable")[: settings.candidates]
    first, last = first[best], last[best]
    segments = (np.stack([starts[first], ends[last]], axis=1) + 0.5) / len(values)
    return segments, np.stack([p_start[first], p_end[last]], axis=1)


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """The candidates of one video as `candidates.h5` holds them, best first."""

    segments: Float32  # (M, 2) in 0…1 of the video
    scores: Float32  # (M, 2): p_start and p_end
    features: Float32  # (M, 32)


def candidates_of(probabilities: ArrayLike, settings: CandidateSettings) -> Candidates:
    """Return one video's candidates with their BSP features; see `generate_candidates`."""
    segments, scores = generate_candidates(probabilities, settings)
    return Candidates(
        segments=segments.astype(np.float32),
        scores=scores.astype(np.float32),
        features=bsp_features(np.asarray(probabilities)[:, ACTIONNESS], segments),
    )
