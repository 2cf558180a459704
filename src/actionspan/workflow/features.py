"""Where features come from: encoders, frames, shards, external files."""

import os
import shlex
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from actionspan.networks.names import FROM_TIMM, FROM_TRANSFORMERS, PACKAGED, TUNED, is_hub
from actionspan.workflow.runs import flags
from actionspan.workflow.steps import step

_RECIPE = "results/features/recipe.json"


class FeaturesPlan:
    """The features of a run: where they come from, the settings that make them, and their files."""

    def __init__(self, config: Mapping[str, Any], shards: Iterable[str]) -> None:
        features, video = config["features"], config["video"]
        self.external = features["source"] == "external"  # people bring the features
        self.kind = kind_of(config)
        # encoders are from `finetune`, which see its images
        self.tuned = features["source"] == "finetuned"
        # a job goes from videos to features with nothing written between
        self.one_pass = not video["keep"]
        # Existing features are kept when their shard is made again. With tuned encoders, or
        # classifiers of the videos' own segments, a new video changes all features.
        own_segments = trains_classifiers(config) and not config["recognition"]["clips"]
        self.takes_over = not (self.external or self.tuned or own_segments)
        new = "new/" if self.takes_over else ""
        self.frames_file = f"results/video/frames/{new}{{shard}}.h5"  # patterns of a shard's files
        self.flow_file = f"results/video/flow/{new}{{shard}}.h5"
        # digests of the code of the steps that make frames and flow, and features
        self.image_code = [step("video frames"), step("video flow")]
        separate = [*self.image_code, step("features extract")]
        self.code = [step("features encode")] if self.one_pass else separate
        self.external_files: list[str] = []  # a changed one re-runs what depends on it
        if self.external:
            self.external_files = sorted(map(str, Path(features["external"]["folder"]).iterdir()))
            shards = ["external"]
        self.shard_files = [f"results/features/shards/{name}.h5" for name in shards]
        self.frames = dict(video["frames"])
        if trains_classifiers(config):  # as many flows as classifiers see at once
            self.frames["stack"] = config["recognition"]["store"]["stack"]
        self.encoders = encoders_of(config)
        clips = self.encoders["clip_encoder"] != "none"
        if not clips:  # their settings then re-run nothing
            self.frames, self.encoders = map(_without_clips, (self.frames, self.encoders))
        self.frames["clips"] = clips
        self.frames["mover_side"] = self.encoders["input_size"] if self.encoders["mover"] else 0
        weights = (self.encoders.get(f"{stream}_weights") for stream in ("rgb", "flow", "clip"))
        named = (features["encoders"][f"{stream}_encoder"] for stream in ("rgb", "clip"))
        brought = [file for name in named for file in encoder_files(name)]
        tuned = [*tuned_files(config), *tuned_folders(config)] if self.tuned else []
        self.weights = list(dict.fromkeys([*weights_files(*weights), *tuned, *brought]))
        self.flow = dict(video["flow"])
        # a changed one re-runs what depends on it
        self.zones = [str(video["zones"])] if video["zones"] and not self.external else []
        self.zones_flag = flags({"zones": video["zones"]}) if self.zones else ""
        # where events are given a zone, from the motion in them
        self.zoned_shards = self.shard_files if self.zones else []
        # the flags of frames and flow, as their own commands take them
        self.image_settings = " ".join(map(flags, (self.frames, video["flow"])))

    def recipe(self, wildcards: Any) -> list[str]:
        """Return the recipe of the features, for jobs that keep existing ones."""
        # the frames below new/, and not of all videos of a shard
        needed = getattr(wildcards, "new", self.takes_over)
        return [_RECIPE] if needed else []

    def recipe_flag(self, wildcards: Any, input: Any) -> str:
        """Return the flag that names the recipe, an input of the job."""
        return f"--recipe {shlex.quote(str(input.recipe))}" if self.recipe(wildcards) else ""


def _without_clips(knobs: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in knobs.items() if not key.startswith("clip_")}


def trains_classifiers(config: Mapping[str, Any]) -> bool:
    """Return whether features are the scores of classifiers that the workflow trains itself."""
    encoders = config["features"]["encoders"]
    given = encoders["rgb_weights"] or encoders["flow_weights"]
    return config["features"]["source"] == "scores" and not given


def tuned_files(config: Mapping[str, Any]) -> list[str]:
    """Return what `finetune train` writes of each stream."""
    return [
        f"results/finetune/{stream}/model.safetensors" for stream in config["finetune"]["streams"]
    ]


def tuned_folders(config: Mapping[str, Any]) -> list[str]:
    """Return the folder that it writes of a network of timm or transformers, if that is tuned."""
    brought = is_hub(config["features"]["encoders"]["rgb_encoder"])
    tuned = brought and "rgb" in config["finetune"]["streams"]
    return [f"results/finetune/rgb/{TUNED}"] if tuned else []


def kind_of(config: Mapping[str, Any]) -> str:
    """Return what encoders give: `scores`, `motion`, or `pooled` features, tuned or not."""
    source = str(config["features"]["source"])
    return source if source in ("scores", "motion") else "pooled"


def encoders_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return features.encoders, filled in for networks that the workflow trains itself."""
    encoders = dict(config["features"]["encoders"])
    if config["features"]["source"] == "finetuned":
        finetune = config["finetune"]
        if encoders["flow_encoder"] == encoders["rgb_encoder"]:
            # not what RGB was tuned to
            given = encoders["flow_weights"] or encoders["rgb_weights"]
            encoders["flow_weights"] = given or PACKAGED
        for stream in finetune["streams"]:
            encoders[f"{stream}_weights"] = f"results/finetune/{stream}/model.safetensors"
        for folder in tuned_folders(config):  # which has the weights
            encoders |= {"rgb_encoder": folder, "rgb_weights": None, "rgb_digest": None}
        # as they saw images while they were tuned
        encoders |= {"input_size": finetune["input_size"], "crop": "squash"}
    # images that are stored have no square, and the papers' classifiers know none
    encoders["mover"] = encoders["mover"] and config["features"]["source"] == "pooled"
    if trains_classifiers(config):
        for stream in ("rgb", "flow"):
            training = training_of(config["recognition"], stream)
            encoders[f"{stream}_encoder"] = training["network"]
            encoders[f"{stream}_weights"] = f"results/recognition/{stream}/model.safetensors"
            encoders["input_size"] = training["input_size"]
    return encoders


def training_of(recognition: Mapping[str, Any], stream: str) -> dict[str, Any]:
    """Return recognition.training, for flow with its own values laid over it."""
    training, own = recognition["training"], recognition["flow"]
    if stream != "flow":
        return dict(training)
    return {key: value if own.get(key) is None else own[key] for key, value in training.items()}


def start_of(recognition: Mapping[str, Any], stream: str) -> str | None:
    """Return the weights that the classifier of a stream starts from, null for the packaged."""
    own = recognition["flow"]["weights"] if stream == "flow" else None
    alike = training_of(recognition, stream)["network"] == recognition["training"]["network"]
    return own or (recognition["weights"] if alike else None)


def found_weights(encoders: Mapping[str, Any], files: Sequence[str]) -> dict[str, Any]:
    """Return settings of encoders with the tuned weights among `files`, the inputs of a job.

    On this disk that is where it was; files in storage are copied elsewhere.
    """
    found = dict(encoders)
    for key, value in encoders.items():
        if value and (key.endswith("_weights") or str(value).endswith(f"/{TUNED}")):
            ending = f"/{value.removeprefix('s3://')}"
            found[key] = next((str(file) for file in files if f"/{file}".endswith(ending)), value)
    return found


def weights_files(*names: str | None) -> list[str]:
    """Return the weights that are files; others are names of published weights, or null."""
    return [name for name in names if name and (Path(name).suffix or Path(name).exists())]


def encoder_files(name: str) -> list[str]:
    """Return the files of an encoder in a folder, of timm or transformers."""
    path = Path(name)
    if not is_hub(name) or name.startswith((FROM_TIMM, FROM_TRANSFORMERS)) or not path.exists():
        return []
    folder = path if path.is_dir() else path.parent
    suffixes = (".json", ".safetensors", ".bin")
    return sorted(str(file) for file in folder.iterdir() if file.suffix in suffixes)


_FOLDER = Path("results/features/earlier")  # a folder for each run since the last whole one


def keep_features(workflow: Any, shards: Sequence[str]) -> None:
    """Link the feature shards that jobs of this run make again, until all of these are there.

    Snakemake deletes the outputs of a job before it starts. A hard link keeps such a file, and
    takes no room while nothing is deleted. Jobs take over its parts that are still valid. On a file
    system without hard links nothing is kept, and every video is encoded again.
    """
    made = {str(file) for job in workflow.dag.needrun_jobs() for file in job.output}
    there = [Path(shard) for shard in shards if shard in made and Path(shard).is_file()]
    if not there:
        return
    with suppress(OSError):
        runs = [int(path.name) for path in _FOLDER.glob("*") if path.name.isdecimal()]
        run = _FOLDER / str(max(runs, default=0) + 1)
        run.mkdir(parents=True)
        for shard in there:
            os.link(shard, run / shard.name)


def drop_features(shards: Sequence[str]) -> None:
    """Remove what earlier runs left, after a successful run, if no shard is missing."""
    if all(map(os.path.isfile, shards)):
        shutil.rmtree(_FOLDER, ignore_errors=True)
