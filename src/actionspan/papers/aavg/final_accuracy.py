"""Accuracies of trained classifiers over clips and seeds, and of both streams together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from actionspan.evaluation.resampling import (
    Floats,
    draw_videos,
    interval,
    resampled_scores,
    seeds_half_width,
)
from actionspan.papers.aavg.learnings import Learning
from actionspan.papers.aavg.run_files import Of, RunScores, by_way, shared_seeds
from actionspan.papers.aavg.settings import ExperimentSettings
from actionspan.recognition.evaluate import fused

TWO_STREAM = "two-stream"
KINDS = ("rgb", "flow", TWO_STREAM)
DRAWING = 1
"""The seed of the bootstrap."""


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """Which validation clips a way of training classifies right.

    Attributes:
        seeds: The numbers of the S seeds.
        correct: (S, V) 100 where the clip is classified right, else 0.
    """

    seeds: tuple[int, ...]
    correct: Floats


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A mean over seeds, or a difference of two, and its interval over clips and seeds."""

    value: float
    low: float
    high: float


def accuracies(scores: Mapping[Of, RunScores]) -> dict[Of, Accuracy]:
    """Return the accuracy of each way of joining learners, by stream and of both (`two-stream`).

    RGB of AAVG4 is that of AAVG3.

    Raises:
        InputError: Two runs are of one way.
    """
    known = by_way(scores)
    for name, _ in scores:
        run = Learning.of_name(name)
        shared = run.trained_as("rgb").way, "rgb"
        if shared in known:
            known.setdefault((run.way, "rgb"), known[shared])
    found = {of: _accuracy([one]) for of, one in known.items()}
    for way in dict.fromkeys(way for way, _ in known):
        streams = [known[way, stream] for stream in ("rgb", "flow") if (way, stream) in known]
        if len(streams) == 2 and set(streams[0].seeds) & set(streams[1].seeds):
            found[way, TWO_STREAM] = _accuracy(streams)
    return found


def _accuracy(streams: Sequence[RunScores]) -> Accuracy:
    places = shared_seeds(streams)
    parts = [one.probabilities[of] for one, of in zip(streams, places, strict=True)]
    right = fused(parts).argmax(axis=2) == streams[0].labels  # (S, V)
    seeds = tuple(streams[0].seeds[place] for place in places[0])
    return Accuracy(seeds=seeds, correct=np.where(right, 100.0, 0.0))


def estimate(values: Floats, settings: ExperimentSettings) -> Estimate:
    """Return the mean of (S, V) values, with the interval over clips and seeds (resampling).

    One seed has an interval over clips alone.
    """
    clips = values.shape[1]
    once = np.ones(clips, np.int64)
    drawn = resampled_scores(
        values[:, :, None], once, draw_videos(clips, settings.resamples, DRAWING)
    )[:, 0]
    seeds = values.mean(axis=1)
    half = seeds_half_width([seeds], settings.confidence)
    value = float(seeds.mean())
    low, high = interval(value, drawn, clips, half, settings.confidence)
    return Estimate(value=value, low=low, high=high)


def paired(better: Accuracy, worse: Accuracy) -> Floats:
    """Return (S, V) differences on the same clips, of the seeds that both have."""
    common = sorted(set(better.seeds) & set(worse.seeds))
    parts = [one.correct[[one.seeds.index(seed) for seed in common]] for one in (better, worse)]
    difference: Floats = parts[0] - parts[1]
    return difference
