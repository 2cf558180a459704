"""What the workflow knows of features: encoders, frames, shards, files that people brought."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from actionspan.plan.checking import encoders_of, trains_classifiers


@dataclass(frozen=True)
class FeaturesPlan:
    """Where features come from."""

    config: Mapping[str, Any]
    shards: list[str]

    @property
    def external(self) -> bool:
        """Whether people bring the features."""
        return bool(self.config["features"]["source"] == "external")

    @property
    def frames(self) -> dict[str, Any]:
        """The settings of frames; classifiers see L flows at once, whatever pooled features do."""
        frames = dict(self.config["video"]["frames"])
        if trains_classifiers(self.config):
            frames["stack"] = self.config["recognition"]["store"]["stack"]
        return frames

    @property
    def encoders(self) -> dict[str, Any]:
        """The settings of the encoders."""
        return encoders_of(self.config)

    @property
    def weights(self) -> list[str]:
        """The checkpoints of the encoders."""
        encoders = self.encoders
        return weights_files(encoders["rgb_weights"], encoders["flow_weights"])

    @property
    def flow_weights(self) -> list[str]:
        """The checkpoint that computes the flow, if one does."""
        return weights_files(self.config["video"]["flow"]["weights"])

    @property
    def shard_files(self) -> list[str]:
        """The feature shards of the data set."""
        names = ["external"] if self.external else self.shards
        return [f"results/features/shards/{name}.h5" for name in names]

    @property
    def external_files(self) -> list[str]:
        """The feature files that people brought, so that a changed one re-runs what it made."""
        folder = self.config["features"]["external"]["folder"] if self.external else None
        return sorted(str(path) for path in Path(folder).iterdir()) if folder else []


def weights_files(*names: str | None) -> list[str]:
    """Return the weights that are files; others are names of published weights, or none."""
    return [name for name in names if name and (Path(name).suffix or Path(name).exists())]
