"""Trainings that are scored on the same videos: means, differences, and intervals of both.

Two trainings with the same seed share their first weights, their order of videos and, where they
sample, their draws; so seeds are compared in pairs. Videos are drawn once for all.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from actionspan.arrays import Float64
from actionspan_papers.estimates import Estimate, over_samples_and_seeds
from actionspan_papers.resampling import draw_videos

Key = TypeVar("Key", bound=Hashable)
Scores = TypeVar("Scores")


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A measure of one way to train, in percent."""

    seeds: Float64
    """(S,) of each seed, on all videos."""
    drawn: Float64
    """(B,) mean over the seeds on each resample of the videos."""
    videos: int

    @property
    def value(self) -> float:
        """The mean over seeds."""
        return float(self.seeds.mean())

    def estimate(self, confidence: float) -> Estimate:
        """Return the mean and its interval over videos and seeds."""
        found = over_samples_and_seeds(
            self.value, [self.seeds], self.drawn, self.videos, confidence
        )
        return found.percentage()

    def above(self, other: "Measured", confidence: float) -> Estimate:
        """Return how much higher this is than another of the same seeds and videos."""
        return over_samples_and_seeds(
            self.value - other.value,
            [self.seeds - other.seeds],
            self.drawn - other.drawn,
            self.videos,
            confidence,
        )


def measure(
    scored: Mapping[Key, Sequence[Scores]],
    score: Callable[[Scores, Float64], float],
    videos: int,
    resamples: int,
) -> dict[Key, Measured]:
    """Return the measure of each way to train.

    Args:
        scored: What each seed's training says of the videos, by way.
        score: Turns that into a fraction; it is told (V,) how often each video counts.
        videos: V.
        resamples: B, of the videos.
    """
    counts = draw_videos(videos, resamples, seed=1).astype(np.float64)  # (B, V)
    once = np.ones(videos)
    return {
        key: Measured(
            seeds=np.array([100 * score(one, once) for one in seeds]),
            drawn=np.array(
                [100 * np.mean([score(one, drawn) for one in seeds]) for drawn in counts]
            ),
            videos=videos,
        )
        for key, seeds in scored.items()
    }
