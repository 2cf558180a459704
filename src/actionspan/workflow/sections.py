"""The sections of the configuration: the settings and the comment of each, and their defaults."""

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from actionspan.dataset.matching import IndexSettings
from actionspan.dataset.settings import LimitSettings
from actionspan.demo.scenario import DemoSettings
from actionspan.evaluation.settings import BaselineSettings, EvaluationSettings
from actionspan.features import settings as features
from actionspan.finetune.settings import FinetuneSettings, StoreSettings
from actionspan.jobs.shards import FaultSettings
from actionspan.parallel.settings import ParallelSettings
from actionspan.plugins import settings_of_steps
from actionspan.proposals import settings as ranked
from actionspan.recognition.clip_lists import ClipSettings
from actionspan.recognition.settings import RecognitionSettings
from actionspan.report.settings import PageSettings
from actionspan.settings import Knob, knobs_of
from actionspan.temporal.settings import TemporalSettings
from actionspan.video.settings import CopySettings, DecoderSettings, FlowSettings, FrameSettings
from actionspan.workflow import settings as own

# one key for all sources: features.source, which the rules pass on as --source; frames of clips and
# squares are kept where features.encoders see them; and dataset.on_bad_input counts for all steps
_ELSEWHERE = (
    (features.EncoderSettings, "source"),
    (FrameSettings, "clips"),
    (FrameSettings, "mover_side"),
    (FaultSettings, "on_bad_input"),
)


@dataclass(frozen=True)
class Section:
    """A section of the configuration: its settings in their order, and its comment."""

    settings: tuple[type[Any], ...]
    comment: str = ""

    @property
    def knobs(self) -> list[Knob]:
        """Its keys: the fields of its settings."""
        knobs = [(settings, knob) for settings in self.settings for knob in knobs_of(settings)]
        return [knob for settings, knob in knobs if (settings, knob.name) not in _ELSEWHERE]


OURS: Mapping[str, Section] = {
    "dataset": Section((own.DatasetKnobs, IndexSettings)),
    "demo": Section((DemoSettings,), "the embedded data set"),
    "video": Section((own.VideoKnobs, DecoderSettings, FaultSettings, LimitSettings)),
    "video.frames": Section((FrameSettings,)),
    "video.flow": Section((FlowSettings,)),
    "recognition": Section(
        (own.RecognitionKnobs,),
        "two-stream classifiers (paper 003): snakemake results/recognition/flow/model.safetensors",
    ),
    "recognition.store": Section((ClipSettings,), "the clips as they are stored"),
    "recognition.training": Section((RecognitionSettings,)),
    "recognition.flow": Section(
        (own.FlowKnobs,), "what flow has of its own; null: the values of RGB, above"
    ),
    "finetune": Section(
        (own.FinetuneKnobs, FinetuneSettings),
        "encoders tuned on the training videos (docs/finetune.md): for features.source finetuned",
    ),
    "finetune.store": Section((StoreSettings,), "the images that they are tuned on"),
    "features": Section((own.FeaturesKnobs,)),
    "features.encoders": Section((features.EncoderSettings,)),
    "features.external": Section(
        (own.ExternalKnobs, features.ExternalSettings),
        "for source external: files people already have, one per video",
    ),
    "features.rescale": Section((features.RescaleSettings,)),
    "features.sequences": Section(
        (features.SequenceSettings,), "the features of the models span and stream"
    ),
    "features.causal": Section(
        (features.CausalSettings,), "their change in time, for the model stream"
    ),
    "temporal": Section((own.TemporalKnobs,)),
    "temporal.parallel": Section((ParallelSettings,)),
    "temporal.training": Section((TemporalSettings,)),
    "proposals": Section(()),
    "proposals.candidates": Section((ranked.CandidateSettings,), "PGM"),
    "proposals.evaluator": Section((ranked.EvaluatorSettings,), "PEM"),
    "proposals.ranking": Section((ranked.RankingSettings,)),
    "proposals.suppression": Section((ranked.SuppressionSettings,), "Soft-NMS"),
    "proposals.classifier": Section((ranked.ClassifierSettings,), "the labels of proposals"),
    "proposals.detections": Section((ranked.DetectionSettings,)),
    "proposals.density": Section(
        (ranked.LatticeSettings, ranked.DensitySettings), "models span and stream"
    ),
    "proposals.selection": Section((ranked.SelectionSettings,), "models span and stream"),
    "proposals.events": Section(
        (ranked.EventSettings,), "the reader's list (models span and stream)"
    ),
    "proposals.chapters": Section((ranked.ChapterSettings,), "what video players show"),
    "proposals.online": Section((ranked.OnlineSettings,), "while a video plays (model stream)"),
    "evaluation": Section((own.EvaluationKnobs,)),
    "evaluation.baseline": Section((BaselineSettings,)),
    "evaluation.protocol": Section((EvaluationSettings,), "the interval of AUC"),
    "report": Section((own.ReportKnobs, PageSettings), "the page: videos, timelines, a summary"),
    "report.copies": Section(
        (CopySettings,),
        "of videos that browsers do not play: snakemake results/report/videos/NAME.mp4",
    ),
    "scaling": Section(
        (own.ScalingKnobs,), "training times over ranks: snakemake results/scaling/speedup.svg"
    ),
    "mpi": Section((own.MpiKnobs,)),
    "cluster": Section((own.ClusterKnobs,), "docs/cluster.md"),
}
PLUGGED: Mapping[str, Section] = {
    name: Section((settings,), comment) for name, (settings, comment) in settings_of_steps().items()
}
"""The sections that plug-ins of steps bring."""
SECTIONS = {**OURS, **PLUGGED}


def defaults() -> dict[str, Any]:
    """Return the whole configuration with the default of each key."""
    config: dict[str, Any] = {}
    fill_in(config)
    return config


def fill_in(config: MutableMapping[str, Any]) -> None:
    """Give each missing key its default, in place; faults are left for the check."""
    for name, section in SECTIONS.items():
        part: Any = config
        for word in name.split("."):
            part = part.setdefault(word, {}) if isinstance(part, MutableMapping) else None
        if isinstance(part, MutableMapping):
            for knob in section.knobs:
                part.setdefault(knob.name, plain(knob.default))


def plain(value: Any) -> Any:
    """Return a default as YAML would give it."""
    if isinstance(value, tuple):
        return list(map(plain, value))
    return str(value) if isinstance(value, Path) else value
