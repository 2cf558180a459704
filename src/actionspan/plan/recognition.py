"""What the workflow knows of recognition: clips, their shards, learners and how they are joined."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from actionspan.dataset.sharding import assign_shards
from actionspan.papers.runs import Learning
from actionspan.parallel.settings import processes
from actionspan.plan.features import weights_files
from actionspan.plan.flags import flags
from actionspan.plan.ranks import launch
from actionspan.recognition.clip_lists import TrimmedClip, list_clips
from actionspan.recognition.settings import RecognitionSettings
from actionspan.settings import from_mapping

STREAMS = ["rgb", "flow"]
LEARNING = Learning.PATTERN
LIBRARIES_MB = 1000
LEARNER_MB = 1500
CLIP_MB = 80  # what a network of the default's size keeps of one clip of 224 pixels


@dataclass(frozen=True)
class RecognitionPlan:
    """The clips that classifiers learn from, and the processes that learn."""

    config: Mapping[str, Any]
    clips: dict[str, TrimmedClip]
    """Trimmed clips by id; empty where segments of the training videos are the clips."""
    shards: dict[str, list[str]]
    """The clips of each shard, or the videos whose segments are clips."""

    @property
    def trimmed(self) -> bool:
        """Whether clips are files of their own."""
        return self.config["recognition"]["clips"] is not None

    @property
    def weights(self) -> list[str]:
        """The checkpoint that networks start from, if it is a file."""
        return weights_files(self.config["recognition"]["weights"])

    @property
    def folder_flags(self) -> str:
        """The flags that name the folder of trimmed clips."""
        recognition = self.config["recognition"]
        named = flags(recognition, "clips", "splits", "split")
        return f"{named} {flags(recognition['store'], 'validation_fraction')}"

    @property
    def clip_files(self) -> list[str]:
        """The trimmed clips and the files that divide them into subsets."""
        splits = self.config["recognition"]["splits"]
        lists = sorted(map(str, Path(splits).glob("*.txt"))) if splits else []
        return [*(str(clip.path) for clip in self.clips.values()), *lists]

    def shard_files(self, wildcards: Any) -> list[str]:
        """Return the files of the clips of a shard."""
        return [str(self.clips[clip].path) for clip in self.shards[wildcards.clip_shard]]

    def shard_flags(self, wildcards: Any) -> str:
        """Return the ids of the clips of a shard."""
        return shlex.join(self.shards[wildcards.clip_shard])

    def shard_rows(self, wildcards: Any) -> list[str]:
        """Return class and subset of each clip: they may change where its file does not."""
        chosen = [self.clips[clip] for clip in self.shards[wildcards.clip_shard]]
        return [f"{clip.label} {clip.subset}" for clip in chosen]

    def learning(self, wildcards: Any) -> Learning:
        """Return how a classifier is trained: as configured, or as its run is named."""
        section = self.config["recognition"]
        if "learning" in wildcards.keys():  # noqa: SIM118 (`in wildcards` asks for values)
            return Learning.of_name(wildcards.learning)
        steps = section["training"]["averaging_steps"]
        return Learning(section["exchange"], steps, section["learners"])

    def processes(self, wildcards: Any) -> int:
        """Return how many processes train together; in_process puts averaged learners into one."""
        learning = self.learning(wildcards)
        if self.config["recognition"]["in_process"] and learning.exchange == "aavg":
            return 1
        return processes(learning.exchange, learning.learners)

    def threads(self, wildcards: Any) -> int:
        """Return the cores of all of them."""
        return self.processes(wildcards) * int(self.config["recognition"]["threads"])

    def memory(self, wildcards: Any) -> int:
        """Return MB: of libraries, and of what a network keeps of the largest batch."""
        training = self.config["recognition"]["training"]
        batch: float = CLIP_MB * training["batch_cap"] * (training["input_size"] / 224) ** 2
        learners: int = self.learning(wildcards).learners
        return LIBRARIES_MB + round(LEARNER_MB + batch) * learners

    def launch(self, wildcards: Any) -> str:
        """Return what starts the learners."""
        return launch(self.config, self.processes(wildcards))

    def flags(self, wildcards: Any) -> str:
        """Return how learners are joined; of temporal.parallel only what the exchange looks at."""
        learning = self.learning(wildcards)
        keys = ["stall_seconds", "cuda_aware"]
        if learning.exchange not in ("none", "aavg", "periodic"):
            keys += ["bucket_kib", "auto_kib", "staleness"]
        return (
            f"--exchange={learning.exchange} --learners={learning.learners}"
            f" {flags(self.config['temporal']['parallel'], *keys)}"
            f" {flags(self._training(wildcards))}"
        )

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
        return self.learning(wildcards).applied(self.config["recognition"]["training"])


def plan_recognition(
    config: Mapping[str, Any], video_shards: dict[str, list[str]]
) -> RecognitionPlan:
    """Find the trimmed clips and divide them into shards.

    Raises:
        InputError: The folder of clips or a split file is not what it should be.
    """
    recognition = config["recognition"]
    if recognition["clips"] is None:
        return RecognitionPlan(config, {}, video_shards)
    splits = recognition["splits"] and Path(recognition["splits"])
    fraction = recognition["store"]["validation_fraction"]
    listed = list_clips(Path(recognition["clips"]), splits, recognition["split"], fraction)
    clips = {clip.clip_id: clip for clip in listed}
    return RecognitionPlan(config, clips, assign_shards(list(clips), "auto"))
