"""Which files a plain run makes of proposals and evaluation, and what baselines look at."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from actionspan.papers.runs import split_seed
from actionspan.plan.features import FeaturesPlan
from actionspan.plan.flags import flags, seeded_flags

BROWSED = 1000  # videos: chapters are made for sets that a person can browse


@dataclass(frozen=True)
class OutcomesPlan:
    """The methods of a run and the files that are made of their proposals."""

    config: Mapping[str, Any]
    videos: list[str]
    features: FeaturesPlan
    run: str
    """The configured run of temporal training."""

    @property
    def models(self) -> list[str]:
        """The trained networks."""
        return list(self.config["temporal"]["models"])

    @property
    def baselines(self) -> list[str]:
        """The baselines; external features have no frames that could differ."""
        names = self.config["evaluation"]["baselines"]
        return [name for name in names if not (self.features.external and name == "difference")]

    @property
    def methods(self) -> list[str]:
        """All that is evaluated, in the order of the tables."""
        return self.models + self.baselines

    @property
    def chapters(self) -> list[str]:
        """The chapters of each video and model."""
        if len(self.videos) > BROWSED:
            return []
        return [
            f"results/proposals/{model}/chapters/{video}.vtt"
            for model in self.models
            for video in self.videos
        ]

    @property
    def timelines(self) -> list[str]:
        """A few timelines, evenly spread over the videos; every other one can be named."""
        count = min(self.config["evaluation"]["timelines"], len(self.videos))
        chosen = [self.videos[i * len(self.videos) // count] for i in range(count)]
        folder = f"results/evaluation/timelines/{self.models[-1]}"
        return [f"{folder}/{video}.svg" for video in chosen]

    @property
    def bundles(self) -> list[str]:
        """The bundle of each model; with features made elsewhere a model cannot take videos."""
        if self.features.external:
            return []
        return [f"results/proposals/{model}/model.pt" for model in self.models]

    @property
    def bundle_flags(self) -> str:
        """The settings that `actionspan propose` needs beside those that features.h5 carries."""
        proposals = self.config["proposals"]
        return flags(
            {**proposals["candidates"], **proposals["ranking"], **proposals["suppression"]}
        )

    def baseline_features(self, wildcards: Any) -> list[str]:
        """Return the features: only the frame-difference baseline looks at the video."""
        difference = split_seed(wildcards.baseline)[0] == "difference"
        return ["results/features/features.h5"] if difference else []

    def baseline_probabilities(self, wildcards: Any) -> list[str]:
        """Return probabilities: only TAG groups actionness, the base network's of the same seed."""
        name = wildcards.baseline
        if split_seed(name)[0] != "tag":
            return []
        model = name.replace("tag", "origin", 1)
        return [f"results/temporal/{model}/{self.run}/probabilities.h5"]

    def baseline_flags(self, wildcards: Any) -> str:
        """Return the settings that this baseline reads, so that others do not re-run it."""
        name = wildcards.baseline
        keys = {
            "random": ["seed"],
            "sliding": ["overlap", "shortest_window", "window_prior"],
        }.get(split_seed(name)[0], [])
        chosen = seeded_flags(self.config["evaluation"]["baseline"], name, "proposals", *keys)
        if keys:
            return chosen
        # those that group a signal have the models' Soft-NMS, but a length of their own
        suppression = dict(self.config["proposals"]["suppression"])
        del suppression["keep"]
        return f"{chosen} {flags(suppression)}"
