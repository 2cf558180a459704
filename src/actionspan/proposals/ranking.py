"""From one video's probabilities or candidates to its ranked proposals."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from actionspan.arrays import Float64
from actionspan.proposals.pgm import Candidates, video_candidates
from actionspan.proposals.settings import CandidateSettings, RankingSettings, SuppressionSettings
from actionspan.proposals.suppression import soft_nms

if TYPE_CHECKING:
    from actionspan.proposals.evaluator import ProposalEvaluator


def propose_video(
    probabilities: ArrayLike,
    duration_seconds: float,
    evaluator: "ProposalEvaluator",
    candidate_settings: CandidateSettings | None = None,
    suppression_settings: SuppressionSettings | None = None,
    ranking_settings: RankingSettings | None = None,
) -> tuple[Float64, Float64]:
    """Return the proposals of one video, the same bits as the workflow writes.

    Args:
        probabilities: (T, 3) start, actionness and end probabilities, in 0…1.
        duration_seconds: The video's length.
        evaluator: A trained evaluator.
        candidate_settings: How to make candidates.
        suppression_settings: How to suppress overlapping candidates.
        ranking_settings: How scores are made.

    Returns:
        segments: (K, 2) starts and ends in seconds, best first.
        scores: (K,) scores, descending.
    """
    # The workflow writes probabilities as float32.
    probabilities = np.asarray(probabilities, np.float32)
    candidates = video_candidates(probabilities, candidate_settings or CandidateSettings())
    return rank_candidates(
        candidates, duration_seconds, evaluator, suppression_settings, ranking_settings
    )


def rank_candidates(
    candidates: Candidates,
    duration_seconds: float,
    evaluator: "ProposalEvaluator",
    suppression_settings: SuppressionSettings | None = None,
    ranking_settings: RankingSettings | None = None,
) -> tuple[Float64, Float64]:
    """Score one video's candidates and suppress them; the rest is that of `propose_video`.

    A score is (p_start · p_end)^boundary_power · tIoU expected by the evaluator.
    """
    if not len(candidates.segments):
        return np.zeros((0, 2)), np.zeros(0)
    iou = evaluator.evaluate_candidates(candidates)
    boundary = candidates.scores.astype(np.float64)
    power = (ranking_settings or RankingSettings()).boundary_power
    scores = (boundary[:, 0] * boundary[:, 1]) ** power * iou
    segments = to_seconds(candidates.segments, duration_seconds)
    kept, scores = soft_nms(segments, scores, suppression_settings, duration=duration_seconds)
    return segments[kept], scores


def to_seconds(segments: ArrayLike, duration_seconds: float) -> Float64:
    """Return segments given in 0…1 of a video in seconds.

    float32 segments are first rounded to a millionth of the video, which gives back the bin
    centres float32 cannot hold.
    """
    shares: Float64 = np.asarray(segments, np.float64).round(6)
    return shares * duration_seconds
