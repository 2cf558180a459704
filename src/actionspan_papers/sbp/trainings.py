"""The trainings that tables 4 and 5 and figure 6 compare: their names, and how each is run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from actionspan.features.settings import EncoderSettings, RescaleSettings
from actionspan.finetune.settings import FinetuneSettings, SamplerName, WayName
from actionspan.temporal.settings import TemporalSettings
from actionspan_papers.sbp.settings import DetectionSettings, TuningSettings

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
