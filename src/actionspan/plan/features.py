"""Where features come from: encoders, frames, shards, files that people have."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from actionspan.plan.checking import encoders_of, kind_of, trains_classifiers
from actionspan.plan.code import shard_step
from actionspan.plan.flags import flags

_RECIPE = "results/features/recipe.json"


class FeaturesPlan:
    """The features of a run.

    Attributes:
        external: Whether people bring the features.
        kind: What encoders give, `pooled` or `scores`.
        tuned: Whether they are those of `finetune`, over its pictures.
        one_pass: Whether a job goes from videos to features with nothing written between.
        takes_over: Whether features that stand are not made again when their shard is. With tuned
            encoders, or classifiers of the videos' own segments, a new video changes all features.
        frames_file: The frames that features are made of, of a shard.
        flow_file: The flow that they are made of.
        code: The files that stand for the code of the steps that make features.
        image_code: Those of frames and flow alone.
        external_files: Their files, so that a changed file re-runs what depends on it.
        frames: The settings of frames; classifiers see L flows at once, as they were trained, and
            the frames of clips are kept if there is a network that sees them.
        encoders: The settings of the encoders.
        weights: The checkpoints of the encoders.
        flow_weights: The checkpoint that computes the flow, if there is one.
        flow: The settings of the flow, as `features encode` takes them.
        image_settings: The flags of frames and flow alone, as their own commands take them.
        shard_files: The feature shards of the data set.
    """

    def __init__(self, config: Mapping[str, Any], shards: Iterable[str]) -> None:
        features, video = config["features"], config["video"]
        self.external = features["source"] == "external"
        self.kind, self.tuned = kind_of(config), features["source"] == "finetuned"
        self.one_pass = not video["keep"]
        own_segments = trains_classifiers(config) and not config["recognition"]["clips"]
        self.takes_over = not (self.external or self.tuned or own_segments)
        new = "new/" if self.takes_over else ""
        self.frames_file = f"results/video/frames/{new}{{shard}}.h5"
        self.flow_file = f"results/video/flow/{new}{{shard}}.h5"
        self.image_code = [shard_step("video frames"), shard_step("video flow")]
        separate = [*self.image_code, shard_step("features extract")]
        self.code = [shard_step("features encode")] if self.one_pass else separate
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
        self.image_settings = " ".join(map(flags, (self.frames, video["flow"])))

    def recipe(self, wildcards: Any) -> list[str]:
        """Return what features are made by, for jobs that leave out or keep those that stand."""
        # the frames below new/, and not those of all videos of a shard
        needed = getattr(wildcards, "new", self.takes_over)
        return [_RECIPE] if needed else []

    def recipe_flag(self, wildcards: Any, input: Any) -> str:
        """Return the flag that names it where the job finds it, its input."""
        return f"--recipe {shlex.quote(str(input.recipe))}" if self.recipe(wildcards) else ""


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
