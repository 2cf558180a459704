"""Recognition: clips, their shards, learners and how they are joined."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from actionspan.dataset.sharding import assign_shards
from actionspan.parallel.settings import processes
from actionspan.plan.features import start_of, training_of, weights_files
from actionspan.plan.flags import flags
from actionspan.plan.runs import Learning
from actionspan.plan.training import launch
from actionspan.recognition.clip_lists import TrimmedClip, list_clips
from actionspan.recognition.settings import RecognitionSettings
from actionspan.settings import from_mapping

STREAMS = ["rgb", "flow"]
LEARNING = Learning.PATTERN
LIBRARIES_MB = 1000
LEARNER_MB = 1500
CLIP_MB = 80  # what the default network keeps of a clip of 224 pixels


class RecognitionPlan:
    """The clips that classifiers learn from, and the processes that learn.

    Attributes:
        trimmed: Whether clips are files of their own, not segments of the training videos.
        clips: Trimmed clips by id.
        shards: The clips of each shard, or the videos whose segments are clips.
        folder_flags: The flags that name the folder of trimmed clips.
        clip_files: The trimmed clips and the files that divide them into subsets.

    Raises:
        InputError: The folder of clips or a split file is not what it should be.
    """

    def __init__(self, config: Mapping[str, Any], video_shards: dict[str, list[str]]) -> None:
        self._config, self._section = config, config["recognition"]
        recognition, store = self._section, self._section["store"]
        self.trimmed = recognition["clips"] is not None
        self.clips: dict[str, TrimmedClip] = {}
        self.shards = video_shards
        splits = Path(recognition["splits"]) if recognition["splits"] else None
        if self.trimmed:
            folder, fraction = Path(recognition["clips"]), store["validation_fraction"]
            listed = list_clips(folder, splits, recognition["split"], fraction)
            self.clips = {clip.clip_id: clip for clip in listed}
            self.shards = assign_shards(list(self.clips), "auto")
        named = flags(recognition, "clips", "splits", "split")
        self.folder_flags = f"{named} {flags(store, 'validation_fraction')}"
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
        """Return how many processes train together; in_process puts averaged learners into one."""
        learning = self.learning(wildcards)
        if self._section["in_process"] and learning.exchange == "aavg":
            return 1
        return processes(learning.exchange, learning.learners)

    def threads(self, wildcards: Any) -> int:
        """Return the cores of all processes."""
        return self.processes(wildcards) * int(self._section["threads"])

    def memory(self, wildcards: Any) -> int:
        """Return MB: the libraries, and what each network keeps of the largest batch."""
        training = self._section["training"]
        batch: float = CLIP_MB * training["batch_cap"] * (training["input_size"] / 224) ** 2
        learners: int = self.learning(wildcards).learners
        return LIBRARIES_MB + round(LEARNER_MB + batch) * learners

    def launch(self, wildcards: Any) -> str:
        """Return what starts the learners."""
        return launch(self._config, self.processes(wildcards))

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
        """Return the flag that names what a network starts from."""
        return flags({"weights": start_of(self._section, wildcards.stream)})

    def rgb_classifier(self, wildcards: Any) -> list[str]:
        """Return the RGB network that flow starts from, of the same run."""
        settings = from_mapping(RecognitionSettings, self._training(wildcards))
        if wildcards.stream != "flow" or not settings.is_on("transfer"):
            return []
        if "learning" in wildcards.keys():  # noqa: SIM118 (`in wildcards` asks for values)
            run = self.learning(wildcards).trained_as("rgb").name
            return [f"results/recognition/runs/{run}/rgb/model.pt"]
        return ["results/recognition/rgb/model.pt"]

    def _training(self, wildcards: Any) -> dict[str, Any]:
        return self.learning(wildcards).applied(training_of(self._section, wildcards.stream))
