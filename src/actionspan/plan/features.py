"""Where features come from: encoders, frames, shards, files that people have."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from actionspan.plan.checking import encoders_of, kind_of, trains_classifiers


class FeaturesPlan:
    """The features of a run.

    Attributes:
        external: Whether people bring the features.
        kind: What encoders give, `pooled` or `scores`.
        tuned: Whether they are those of `finetune`, over its pictures.
        one_pass: Whether a job goes from videos to features with nothing written between.
        external_files: Their files, so that a changed file re-runs what depends on it.
        frames: The settings of frames; classifiers see L flows at once, as they were trained, and
            the frames of clips are kept if there is a network that sees them.
        encoders: The settings of the encoders.
        weights: The checkpoints of the encoders.
        flow_weights: The checkpoint that computes the flow, if there is one.
        flow: The settings of the flow, as `features encode` takes them.
        shard_files: The feature shards of the data set.
    """

    def __init__(self, config: Mapping[str, Any], shards: Iterable[str]) -> None:
        features, video = config["features"], config["video"]
        self.external = features["source"] == "external"
        self.kind, self.tuned = kind_of(config), features["source"] == "finetuned"
        self.one_pass = not video["keep"]
        self.external_files: list[str] = []
        if self.external:
            self.external_files = sorted(map(str, Path(features["external"]["folder"]).iterdir()))
            shards = ["external"]
        self.shard_files = [f"results/features/shards/{name}.h5" for name in shards]
        self.frames = dict(video["frames"])
        if trains_classifiers(config):
            self.frames["stack"] = config["recognition"]["store"]["stack"]
        self.encoders = encoders_of(config)
        clips = self.encoders["clip_encoder"] != "none"
        if not clips:  # their knobs then re-run nothing
            self.frames, self.encoders = (
                {key: value for key, value in knobs.items() if not key.startswith("clip_")}
                for knobs in (self.frames, self.encoders)
            )
        self.frames["clips"] = clips
        self.weights = weights_files(
            *(self.encoders.get(f"{stream}_weights") for stream in ("rgb", "flow", "clip"))
        )
        self.flow_weights = weights_files(video["flow"]["weights"])
        # `features encode` has two devices
        self.flow = {
            "flow_device" if key == "device" else key: value for key, value in video["flow"].items()
        }


def found_weights(encoders: Mapping[str, Any], files: Sequence[str]) -> dict[str, Any]:
    """Return settings of encoders with the weights where a job finds them, its inputs `files`.

    On this disk that is where they were; files in storage are copied elsewhere.
    """
    found = dict(encoders)
    for key, value in encoders.items():
        if key.endswith("_weights") and value:
            ending = f"/{value.removeprefix('s3://')}"
            found[key] = next((str(file) for file in files if f"/{file}".endswith(ending)), value)
    return found


def weights_files(*names: str | None) -> list[str]:
    """Return the weights that are files; others are names of published weights, or null."""
    return [name for name in names if name and (Path(name).suffix or Path(name).exists())]
