"""The processes of trainings: the command that starts them, their number, memory and flags."""

import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from actionspan.dataset.sharding import assign_shards
from actionspan.finetune.settings import ENCODERS, WITHOUT_TEMPORAL
from actionspan.parallel.settings import processes
from actionspan.recognition.clip_lists import TrimmedClip, list_clips
from actionspan.recognition.settings import RecognitionSettings
from actionspan.settings import from_mapping
from actionspan.workflow.features import (
    encoder_files,
    start_of,
    training_of,
    tuned_files,
    tuned_folders,
    weights_files,
)
from actionspan.workflow.runs import Learning, flags

STREAMS = ["rgb", "flow"]
LEARNING = Learning.PATTERN
_LIBRARIES_MB = 1000
_LEARNER_MB = 1500
_CLIP_MB = 80  # memory of the default network for a clip of 224 pixels
_STAGE = ("exchange", "ranks", "threads", "store", "measure")  # keys that are not FinetuneSettings


class _Together(ABC):
    """Processes that train together; methods take the wildcards of a job."""

    def __init__(self, config: Mapping[str, Any], section: str) -> None:
        self._config, self._section = config, config[section]

    @abstractmethod
    def processes(self, wildcards: Any) -> int:
        """Return how many there are: the ranks, and the server of some exchanges."""

    def threads(self, wildcards: Any) -> int:
        """Return the cores of all of them."""
        return self.processes(wildcards) * int(self._section["threads"])

    def launch(self, wildcards: Any) -> str:
        """Return what starts them: a resource, so that another launcher re-runs nothing."""
        return launch(self._config, self.processes(wildcards))


class RanksPlan(_Together):
    """The processes of a temporal training; its `run` has a name like ring-4."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config, "temporal")
        temporal, scaling = self._section, config["scaling"]
        self.run = f"{temporal['exchange']}-{temporal['ranks']}"
        named = [f"{name}-{ranks}" for name in scaling["exchanges"] for ranks in scaling["ranks"]]
        self.scaling_runs = ["none-1", *named]  # one rank without an exchange: the reference
        # short, and the last epoch kept, so that all timed runs do equal work
        timed = {"epochs": scaling["epochs"], "keep": "last"}
        self.scaling_training = {**temporal["training"], **timed}

    def processes(self, wildcards: Any) -> int:
        """Return how many there are, by the name of the run."""
        exchange, _, ranks = wildcards.run.rpartition("-")
        return processes(exchange, int(ranks))

    def memory(self, wildcards: Any) -> int:
        """Return MB."""
        return 1000 + 1000 * self.processes(wildcards)

    def flags(self, wildcards: Any) -> str:
        """Return the flags of the exchange."""
        exchange, _, ranks = wildcards.run.rpartition("-")
        return _exchange_flags(self._config, exchange, int(ranks))


def launch(config: Mapping[str, Any], count: int) -> str:
    """Return what starts several processes; a single process needs nothing.

    Their number replaces `{ranks}` in the launcher, or follows it as `-n N`.
    """
    launcher: str = config["mpi"]["launcher"]
    if count == 1:
        return ""
    if "{ranks}" in launcher:
        return launcher.replace("{ranks}", str(count))
    return f"{launcher} -n {count}"


def _exchange_flags(config: Mapping[str, Any], exchange: str, ranks: int) -> str:
    parallel = flags(config["temporal"]["parallel"])
    return "" if exchange == "none" else f"--exchange={exchange} --ranks={ranks} {parallel}"


class FinetunePlan(_Together):
    """The tuning of encoders: its flags, checkpoints to start from, and memory in MB."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config, "finetune")
        finetune, features = self._section, config["features"]
        encoders = {key: features["encoders"][key] for key in ENCODERS}
        if "flow" not in finetune["streams"]:  # untuned streams re-run nothing
            encoders = {key: value for key, value in encoders.items() if "flow" not in key}
        self.weights = weights_files(encoders.get("rgb_weights"), encoders.get("flow_weights"))
        self.weights += encoder_files(encoders["rgb_encoder"])
        self.models, self.folders = tuned_files(config), tuned_folders(config)
        own = {key: value for key, value in finetune.items() if key not in _STAGE}
        temporal = config["temporal"]["training"].items()
        training = {key: value for key, value in temporal if key not in WITHOUT_TEMPORAL}
        self.settings = " ".join(map(flags, (own, encoders, features["rescale"], training)))
        self.joined = _exchange_flags(config, finetune["exchange"], finetune["ranks"])
        budget = _LIBRARIES_MB + int(finetune["memory_budget_mb"])
        self.memory = budget * self.processes()

    def processes(self, _: Any = None) -> int:
        """Return how many processes tune together."""
        return processes(self._section["exchange"], self._section["ranks"])


class RecognitionPlan(_Together):
    """The clips that classifiers learn from, and the processes that learn.

    Raises:
        InputError: The folder of clips or a split file is wrong.
    """

    def __init__(self, config: Mapping[str, Any], video_shards: dict[str, list[str]]) -> None:
        super().__init__(config, "recognition")
        recognition, store = self._section, self._section["store"]
        # clips are files, not segments of the training videos
        self.trimmed = recognition["clips"] is not None
        self.clips: dict[str, TrimmedClip] = {}  # by id
        self.shards = video_shards  # of clips, or of the videos that hold them
        splits = Path(recognition["splits"]) if recognition["splits"] else None
        if self.trimmed:
            folder, fraction = Path(recognition["clips"]), store["validation_fraction"]
            listed = list_clips(folder, splits, recognition["split"], fraction)
            self.clips = {clip.clip_id: clip for clip in listed}
            self.shards = assign_shards(list(self.clips), "auto")
        named = flags(recognition, "clips", "splits", "split")
        self.folder_flags = f"{named} {flags(store, 'validation_fraction')}"
        # the trimmed clips, and the files that divide them into subsets
        lists = sorted(map(str, splits.glob("*.txt"))) if splits else []
        self.clip_files = [*(str(clip.path) for clip in self.clips.values()), *lists]

    def shard_files(self, wildcards: Any) -> list[str]:
        """Return the files of the clips of a shard."""
        return [str(self.clips[clip].path) for clip in self.shards[wildcards.clip_shard]]

    def shard_flags(self, wildcards: Any) -> str:
        """Return the flags that name the clips of a shard."""
        # a flag each: an id may begin with a hyphen
        return shlex.join(f"--shard-clips={clip}" for clip in self.shards[wildcards.clip_shard])

    def shard_rows(self, wildcards: Any) -> list[str]:
        """Return class and subset of each clip: they may change where its file does not."""
        chosen = [self.clips[clip] for clip in self.shards[wildcards.clip_shard]]
        return [f"{clip.label} {clip.subset}" for clip in chosen]

    def learning(self, wildcards: Any) -> Learning:
        """Return how a classifier is trained: as configured, or as its run is named."""
        if "learning" in wildcards.keys():  # noqa: SIM118 (`in wildcards` asks for values)
            return Learning.of_name(wildcards.learning)
        steps = self._section["training"]["averaging_steps"]
        return Learning(self._section["exchange"], steps, self._section["learners"])

    def processes(self, wildcards: Any) -> int:
        """Return how many there are; in_process puts averaged learners into one."""
        learning = self.learning(wildcards)
        if self._section["in_process"] and learning.exchange == "aavg":
            return 1
        return processes(learning.exchange, learning.learners)

    def memory(self, wildcards: Any) -> int:
        """Return MB: the libraries, and what each network keeps of the largest batch."""
        training = self._section["training"]
        batch: float = _CLIP_MB * training["batch_cap"] * (training["input_size"] / 224) ** 2
        learners: int = self.learning(wildcards).learners
        return _LIBRARIES_MB + round(_LEARNER_MB + batch) * learners

    def flags(self, wildcards: Any) -> str:
        """Return how learners are joined, with the keys of temporal.parallel the exchange reads."""
        learning = self.learning(wildcards)
        keys = ["stall_seconds", "cuda_aware"]
        if learning.exchange not in ("none", "aavg", "periodic"):
            keys += ["bucket_kib", "auto_kib", "staleness"]
        joined = f"--exchange={learning.exchange} --learners={learning.learners}"
        parallel = flags(self._config["temporal"]["parallel"], *keys)
        return f"{joined} {parallel} {flags(self._training(wildcards))}"

    def weights(self, wildcards: Any) -> list[str]:
        """Return the checkpoint that a network starts from, if it is a file."""
        return weights_files(start_of(self._section, wildcards.stream))

    def weights_flags(self, wildcards: Any) -> str:
        """Return the flag that names a network's initial weights."""
        return flags({"weights": start_of(self._section, wildcards.stream)})

    def rgb_classifier(self, wildcards: Any) -> list[str]:
        """Return the RGB network that flow starts from, of the same run."""
        settings = from_mapping(RecognitionSettings, self._training(wildcards))
        if wildcards.stream != "flow" or not settings.is_on("transfer"):
            return []
        if "learning" in wildcards.keys():  # noqa: SIM118 (`in wildcards` asks for values)
            run = self.learning(wildcards).trained_as("rgb").name
            return [f"results/recognition/runs/{run}/rgb/model.safetensors"]
        return ["results/recognition/rgb/model.safetensors"]

    def _training(self, wildcards: Any) -> dict[str, Any]:
        return self.learning(wildcards).applied(training_of(self._section, wildcards.stream))
