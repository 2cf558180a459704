"""The evaluator of candidates (PEM of BSN), and the proposals that it ranks."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from actionspan import __version__
from actionspan.arrays import Float32, Float64
from actionspan.errors import InputError
from actionspan.jobs.determinism import deterministic
from actionspan.proposals.pgm import FEATURES, Candidates, candidates_of
from actionspan.proposals.settings import CandidateSettings, RankingSettings, SuppressionSettings
from actionspan.proposals.suppression import soft_nms_of_many
from actionspan.storage.model_files import Part, read_model, write_model

BOUNDARY_INPUTS = 3  # p_start, p_end, length


def boundary_inputs(scores: ArrayLike, segments: ArrayLike) -> Float32:
    """Return p_start, p_end and the length of candidates, (M, 3) in 0…1.

    `scores` are (M, 2), `segments` (M, 2) in 0…1 of the video. BSN's features, samples of
    actionness, show neither the certainty of a candidate's boundaries nor its length.
    """
    both, ends = (np.asarray(each, np.float32).reshape(-1, 2) for each in (scores, segments))
    return np.column_stack([both, ends[:, 1] - ends[:, 0]])


@contextmanager
def _one_thread() -> Iterator[None]:
    """Evaluate in this block: entered once for many videos, as each time takes a tenth of one."""
    with deterministic(threads=1), torch.inference_mode():
        yield


class ProposalEvaluator(nn.Module):
    """Linear(32 → hidden), ReLU, Linear(hidden → 1), sigmoid.

    With 35 inputs it also sees p_start, p_end and the length (`boundary_scores`).
    """

    def __init__(self, hidden: int = 256, features: int = FEATURES) -> None:
        super().__init__()
        self.hidden = nn.Linear(features, hidden)
        self.output = nn.Linear(hidden, 1)

    def forward(self, features: Tensor) -> Tensor:
        """Return the expected tIoU, (M,) in 0…1, of (M, 32) features."""
        hidden = self.hidden(features).relu_()  # (M, hidden); two of them are more than a cache
        iou: Tensor = torch.sigmoid(self.output(hidden)).squeeze(1)  # (M,)
        return iou

    def evaluate(self, features: ArrayLike) -> Float32:
        """Return the expected tIoU, (M,), of one video's candidates, (M, 32).

        One video at a time, on one thread: so its numbers depend on nothing else.
        """
        with _one_thread():
            return self._answers(features)

    def evaluate_candidates(self, candidates: Candidates) -> Float32:
        """Return the expected tIoU, (M,), of one video's candidates."""
        with _one_thread():
            return self.answer(candidates)

    def answer(self, candidates: Candidates) -> Float32:
        """Return what `evaluate_candidates` does, within `one_thread()`."""
        inputs = candidates.features
        if self.hidden.in_features == inputs.shape[1] + BOUNDARY_INPUTS:
            more = boundary_inputs(candidates.scores, candidates.segments)
            inputs = np.concatenate([inputs, more], axis=1)
        return self._answers(inputs)

    def _answers(self, features: ArrayLike) -> Float32:
        iou: Float32 = self(torch.from_numpy(np.array(features, np.float32))).numpy()
        return iou


def evaluator_state(evaluator: ProposalEvaluator) -> dict[str, Any]:
    """Return what `evaluator_from_state` needs, as `torch.load(weights_only=True)` allows."""
    return {
        "hidden": evaluator.hidden.out_features,
        "features": evaluator.hidden.in_features,
        "weights": evaluator.state_dict(),
    }


def evaluator_from_state(part: Part) -> ProposalEvaluator:
    """Build the evaluator that `evaluator_state` described, or raise InputError."""
    hidden = part["hidden"].whole(1, 65_536)
    features = part["features"].whole(FEATURES, FEATURES + BOUNDARY_INPUTS)
    if features not in (FEATURES, FEATURES + BOUNDARY_INPUTS):
        part["features"].refuse(f"{FEATURES} or {FEATURES + BOUNDARY_INPUTS}")
    return part["weights"].network(lambda: ProposalEvaluator(hidden, features), "the evaluator")


def save_evaluator(path: Path, evaluator: ProposalEvaluator, settings_digest: str) -> None:
    """Write the evaluator, atomically; equal weights give equal bytes."""
    kind = {"kind": "actionspan proposal evaluator", "actionspan_version": __version__}
    state = evaluator_state(evaluator)
    write_model(path, {**kind, "digest": settings_digest, "evaluator": state})


def load_evaluator(path: Path) -> ProposalEvaluator:
    """Read what `save_evaluator` wrote, or raise InputError."""
    unreadable = "not a proposal evaluator; `actionspan proposals train` makes one"
    part = read_model(path, unreadable)
    if "evaluator" not in part:
        raise InputError(f"{path}: {unreadable}")
    return evaluator_from_state(part["evaluator"])


def propose_video(
    probabilities: ArrayLike,
    duration_seconds: float,
    evaluator: ProposalEvaluator,
    candidate_settings: CandidateSettings | None = None,
    suppression_settings: SuppressionSettings | None = None,
    ranking_settings: RankingSettings | None = None,
) -> tuple[Float64, Float64]:
    """Return the proposals of one video, the same bits as the workflow writes.

    Args:
        probabilities: (T, 3) start, actionness and end probabilities, in 0…1.
        duration_seconds: The video's length.
        evaluator: A trained evaluator.
        candidate_settings: How candidates are made.
        suppression_settings: How overlapping candidates are suppressed.
        ranking_settings: How scores are made.

    Returns:
        (K, 2) segments in seconds, best first, and their (K,) scores.
    """
    written = np.asarray(probabilities, np.float32)  # as the workflow writes them
    candidates = candidates_of(written, candidate_settings or CandidateSettings())
    settings = suppression_settings, ranking_settings
    return rank_candidates(candidates, duration_seconds, evaluator, *settings)


def rank_candidates(
    candidates: Candidates,
    duration_seconds: float,
    evaluator: ProposalEvaluator,
    suppression_settings: SuppressionSettings | None = None,
    ranking_settings: RankingSettings | None = None,
) -> tuple[Float64, Float64]:
    """Score one video's candidates and suppress them; see `propose_video`.

    A score is (p_start · p_end)^boundary_power · tIoU expected by the evaluator.
    """
    settings = suppression_settings, ranking_settings
    return rank_all([(candidates, duration_seconds)], evaluator, *settings)[0]


def rank_all(
    videos: Iterable[tuple[Candidates, float]],
    evaluator: ProposalEvaluator,
    suppression_settings: SuppressionSettings | None = None,
    ranking_settings: RankingSettings | None = None,
) -> list[tuple[Float64, Float64]]:
    """Return what `rank_candidates` gives for each of many videos: candidates and duration."""
    power = (ranking_settings or RankingSettings()).boundary_power
    scored = []
    with _one_thread():
        for candidates, duration in videos:
            boundary = candidates.scores.astype(np.float64)
            scores = (boundary[:, 0] * boundary[:, 1]) ** power * evaluator.answer(candidates)
            scored.append((to_seconds(candidates.segments, duration), scores, duration))
    ranked = soft_nms_of_many(scored, suppression_settings)
    pairs = zip(scored, ranked, strict=True)
    return [(segments[kept], scores) for (segments, *_), (kept, scores) in pairs]


def to_seconds(segments: ArrayLike, duration_seconds: float) -> Float64:
    """Return segments given in 0…1 of a video in seconds.

    Rounding to a millionth of the video gives back the bin centres that float32 cannot hold.
    """
    shares: Float64 = np.asarray(segments, np.float64).round(6)
    return shares * duration_seconds
