"""Candidates of a prediction: the segments that the network found itself, or PGM's pairs."""

import numpy as np

from actionspan.arrays import Float32, Int64
from actionspan.proposals.bsp import bsp_features
from actionspan.proposals.pgm import ACTIONNESS, Candidates, count_candidates, video_candidates
from actionspan.proposals.settings import CandidateSettings
from actionspan.temporal.probabilities import Prediction

_ROUNDING = 1e-3  # of a step, for what float32 cannot hold


def chosen_segments(
    segments: Float32, scores: Float32, steps: int, settings: CandidateSettings
) -> Int64:
    """Return the rows of the best segments of a video of so many steps, best first.

    `shortest`, `longest` and `candidates` are those of PGM; `peak_ratio` does not apply. Segments
    of equal score keep their order.
    """
    length = (segments[:, 1].astype(np.float64) - segments[:, 0]) * steps
    allowed = length >= settings.shortest - _ROUNDING
    if settings.longest:
        allowed &= length <= settings.longest + _ROUNDING
    rows = allowed.nonzero()[0]
    best: Int64 = rows[np.argsort(-scores[rows], kind="stable")[: settings.candidates]]
    return best


def count_of(prediction: Prediction, settings: CandidateSettings) -> int:
    """Return how many candidates `candidates_of` makes."""
    probabilities, segments, scores, _ = prediction
    if segments is None or scores is None:
        return count_candidates(probabilities, settings)
    return len(chosen_segments(segments, scores, len(probabilities), settings))


def candidates_of(prediction: Prediction, settings: CandidateSettings) -> Candidates:
    """Return one video's candidates with their BSP features.

    A network's own segments come with its score in place of both p_start and p_end.
    """
    probabilities, segments, scores, _ = prediction
    if segments is None or scores is None:
        return video_candidates(probabilities, settings)
    best = chosen_segments(segments, scores, len(probabilities), settings)
    return Candidates(
        segments=segments[best],
        scores=np.repeat(scores[best, None], 2, axis=1),
        features=bsp_features(probabilities[:, ACTIONNESS], segments[best]),
    )
