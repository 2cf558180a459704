"""The trainings that tables 4 and 5 and figure 6 compare: their names, how each is run and scored.

Two trainings with the same seed share their first weights, their order of videos and, where they
sample, their draws; so seeds are compared in pairs. Videos are drawn once for all.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from actionspan.arrays import Float64
from actionspan.features.settings import EncoderSettings, RescaleSettings
from actionspan.finetune.settings import FinetuneSettings, SamplerName, WayName
from actionspan.temporal.settings import TemporalSettings
from actionspan_papers.estimates import Estimate, over_samples_and_seeds
from actionspan_papers.resampling import draw_videos
from actionspan_papers.sbp.settings import DetectionSettings, TuningSettings

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


FROZEN, FULL, SBP = "frozen", "full", "sbp"
UNIFORM: SamplerName = "uniform_random"
IMPORTANCE: SamplerName = "importance"
COMPARED: tuple[SamplerName, ...] = (UNIFORM, "diverse_feature", "diverse_gradient")
"""The samplers of figure 6."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """A way to train an encoder; `encoder_share` is its step size ÷ that of the network above."""

    way: WayName = "sbp"
    keep_ratio: float = 1.0
    sampler: SamplerName = UNIFORM
    encoder_share: float | None = None
    """None: as the settings of all trainings have it."""

    @property
    def name(self) -> str:
        """Return a name for tables and folders, such as sbp-0.25-importance."""
        if self.way != SBP:
            return self.way
        share = "" if self.encoder_share is None else f"-{self.encoder_share:g}"
        sampler = "" if self.sampler == UNIFORM else f"-{self.sampler}"
        return f"{SBP}-{self.keep_ratio:g}{sampler}{share}"

    def cells(self) -> dict[str, str]:
        """Return what a table says of the training."""
        sbp = self.way == SBP
        return {
            "way": self.way,
            "keep_ratio": f"{self.keep_ratio:g}" if sbp else "",
            "sampler": self.sampler if sbp else "",
        }


def online_trainings(own: DetectionSettings) -> list[Training]:
    """Return the trainings of table 4, the frozen encoder first."""
    return [*_ends(), *(Training(keep_ratio=ratio) for ratio in own.online_ratios)]


def localisation_trainings(own: DetectionSettings) -> list[Training]:
    """Return the trainings of table 5, the frozen encoder first, and importance sampling last."""
    ours = Training(keep_ratio=own.importance_ratio, sampler=IMPORTANCE)
    return [*_ends(), *(Training(keep_ratio=ratio) for ratio in own.ratios), ours]


def swept_trainings(own: DetectionSettings) -> list[Training]:
    """Return the trainings of figure 6: each sampler with each step size of the encoder."""
    return [
        Training(keep_ratio=own.figure_ratio, sampler=sampler, encoder_share=share)
        for sampler in COMPARED
        for share in own.shares
    ]


def _ends() -> list[Training]:
    return [Training(way="frozen"), Training(way="full")]


def finetune_settings(training: Training, own: TuningSettings, seed: int) -> FinetuneSettings:
    """Return the settings of a training; no video is held out, the last epoch is kept."""
    share = own.encoder_share if training.encoder_share is None else training.encoder_share
    return FinetuneSettings(
        way=training.way,
        keep_ratio=training.keep_ratio,
        sampler=training.sampler,
        input_size=own.input_size,
        epochs=own.epochs,
        batch_size=own.batch_size,
        encoder_rate=share * own.temporal_rate,
        temporal_rate=own.temporal_rate,
        keep="last",
        snippet_stride=own.snippet_stride,
        score_every=0,
        seed=seed,
    )


def tuned(
    snippets: Sequence[Path],
    annotations: Path,
    training: Training,
    own: TuningSettings,
    seed: int,
    out: Path,
    **more: Any,
) -> Path:
    """Tune the RGB encoder into the folder `out`, and return that; `more` is given to `tune`."""
    from actionspan.finetune.tuning import tune

    tune(
        snippets,
        annotations,
        finetune_settings(training, own, seed),
        encoder_settings(own),
        rescale_settings(own),
        temporal_settings(seed),
        out,
        **more,
    )
    return out


def encoder_settings(own: TuningSettings, weights: Path | None = None) -> EncoderSettings:
    """Return the encoder to start from, or that of a tuning's checkpoint."""
    return EncoderSettings(rgb_weights=weights, input_size=own.input_size, device="cpu")


def rescale_settings(own: TuningSettings) -> RescaleSettings:
    """Return how features become the steps of a temporal network."""
    return replace(RescaleSettings(), components=own.components)


def temporal_settings(seed: int) -> TemporalSettings:
    """Return how a temporal network is built, and trained on features that do not change."""
    return replace(TemporalSettings(), seed=seed)
