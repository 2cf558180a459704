"""Accuracies of trained classifiers over clips and seeds, and of both streams together."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from actionspan.arrays import Float64
from actionspan.plan.runs import Learning
from actionspan_papers.aavg.comparisons import STREAMS
from actionspan_papers.aavg.readers import RunKey, RunScores, Scores, by_way, shared_seeds
from actionspan_papers.aavg.settings import ExperimentSettings
from actionspan_papers.estimates import Estimate, over_samples_and_seeds
from actionspan_papers.resampling import draw_videos, resampled_scores

TWO_STREAM = "two-stream"
KINDS = (*STREAMS, TWO_STREAM)
_DRAWING = 1
"""The seed of the bootstrap."""


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """Which validation clips a way of training classifies right."""

    seeds: tuple[int, ...]
    """The numbers of the S seeds."""
    correct: Float64
    """(S, V) 100 where the clip is classified right, else 0."""


def accuracies(scores: Scores) -> dict[RunKey, Accuracy]:
    """Return the accuracy of each way of joining learners, by stream and of both (`two-stream`).

    RGB of AAVG4 is that of AAVG3.

    Raises:
        InputError: Two runs are of one way.
    """
    runs = by_way(scores)
    for name, _ in scores:
        learning = Learning.of_name(name)
        shared = learning.trained_as("rgb").way, "rgb"
        if shared in runs:
            runs.setdefault((learning.way, "rgb"), runs[shared])
    by_key = {key: _accuracy([run_scores]) for key, run_scores in runs.items()}
    for way in dict.fromkeys(way for way, _ in runs):
        streams = [runs[way, stream] for stream in STREAMS if (way, stream) in runs]
        if len(streams) == 2 and set(streams[0].seeds) & set(streams[1].seeds):
            by_key[way, TWO_STREAM] = _accuracy(streams)
    return by_key


def _accuracy(streams: Sequence[RunScores]) -> Accuracy:
    from actionspan.recognition.scores import fused

    places = shared_seeds([scores.seeds for scores in streams])
    parts = [scores.probabilities[seeds] for scores, seeds in zip(streams, places, strict=True)]
    right = fused(parts).argmax(axis=2) == streams[0].labels  # (S, V)
    seeds = tuple(streams[0].seeds[place] for place in places[0])
    return Accuracy(seeds=seeds, correct=np.where(right, 100.0, 0.0))


def estimate(values: Float64, settings: ExperimentSettings) -> Estimate:
    """Return the mean of (S, V) values, with the interval over clips and seeds.

    One seed has an interval over clips alone.
    """
    clips = values.shape[1]
    draws = draw_videos(clips, settings.resamples, _DRAWING)
    drawn = resampled_scores(values[:, :, None], np.ones(clips, np.int64), draws)[:, 0]
    seeds = values.mean(axis=1)
    return over_samples_and_seeds(float(seeds.mean()), [seeds], drawn, clips, settings.confidence)


def scores_words(scores: Scores) -> str:
    """Return on what accuracies were measured."""
    first = next(iter(scores.values()))
    return (
        f"{len(first.clips):,} validation clips of {len(first.classes)} classes, "
        f"{first.samples} positions of each; the epoch of a network (recognition.training.keep) is "
        "chosen on the same clips"
    )


def interval_words(settings: ExperimentSettings) -> str:
    """Return what the brackets of accuracies are."""
    return (
        f"Mean over seeds and, in brackets, the {100 * settings.confidence:.4g} % interval over "
        f"clips (bootstrap, {settings.resamples:,} resamples, each clip for itself whatever its "
        "video) and seeds (Student's t); of one seed over clips alone, which says nothing about "
        "another training."
    )
