"""What the workflow knows of the data set before anything runs: videos, shards, clips."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from actionspan.dataset.sharding import assign_shards, find_videos, left_out
from actionspan.demo.names import demo_video_names
from actionspan.errors import InputError

MOST_SHARDS = 2048  # more take Snakemake long to plan


@dataclass(frozen=True)
class DatasetPlan:
    """The videos of a run and the shards they are worked on in."""

    config: Mapping[str, Any]
    paths: dict[str, str]
    """The file of each video; empty where only external features are given."""
    shards: dict[str, list[str]]
    """The video ids of each shard."""

    @property
    def is_demo(self) -> bool:
        """Whether the videos are the rendered ones."""
        return bool(self.config["dataset"]["videos"] == "demo")

    @property
    def videos(self) -> list[str]:
        """The ids of all videos."""
        return list(self.paths)

    @property
    def annotations(self) -> str:
        """The annotation file or folder as it is given to `dataset index`."""
        demo = "results/dataset/demo/annotations.json"
        return demo if self.is_demo else str(self.config["dataset"]["annotations"])

    @property
    def annotation_files(self) -> list[str]:
        """The files of the annotations: one, or in a folder THUMOS14's text files."""
        return _annotation_files(self.annotations)

    @cached_property
    def passed_over(self) -> dict[str, str]:
        """The files of the video folder that are left out, and why (a second of one name)."""
        if self.is_demo or self.config["dataset"]["videos"] is None:
            return {}
        return left_out(Path(self.config["dataset"]["videos"]))

    def shard_videos(self, wildcards: Any) -> list[str]:
        """Return the files of the videos of a shard."""
        return [self.paths[video] for video in self.shards[wildcards.shard]]


def plan_dataset(config: Mapping[str, Any], name: str) -> DatasetPlan:
    """Find the videos of a checked configuration and divide them into shards.

    Args:
        config: The configuration.
        name: How messages call it.

    Raises:
        InputError: There are no videos or annotations, or too many shards; the line names the key.
    """
    paths = _videos(config, name)
    per_shard = config["dataset"]["videos_per_shard"]
    shards = assign_shards(list(paths), per_shard)
    if len(shards) > MOST_SHARDS:
        raise InputError(
            f"{name}: dataset.videos_per_shard: {per_shard} makes {len(shards)} shards; at most "
            f"{MOST_SHARDS} are planned: give {-(-len(paths) // MOST_SHARDS)} or more, or auto"
        )
    return DatasetPlan(config, paths, shards)


def _videos(config: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return {video id: path}."""
    dataset, features = config["dataset"], config["features"]
    if dataset["videos"] == "demo":
        files = demo_video_names(config["demo"]["videos"])
        return {Path(file).stem: f"results/dataset/demo/{file}" for file in files}
    videos = find_videos(Path(dataset["videos"])) if dataset["videos"] is not None else {}
    if dataset["videos"] is not None and not videos:
        raise InputError(f"{name}: dataset.videos: no video in {dataset['videos']}")
    annotations = dataset["annotations"]
    if not (annotations and Path(annotations).exists()):
        raise InputError(
            f"{name}: dataset.annotations: {annotations}: no such file; training needs "
            "annotations (`actionspan propose` finds proposals in videos without any)"
        )
    if not _annotation_files(annotations):
        raise InputError(
            f"{name}: dataset.annotations: {annotations}: a folder without .txt files; "
            "those of THUMOS14 are <Class>_val.txt and <Class>_test.txt"
        )
    folder = features["external"]["folder"]
    if features["source"] == "external" and not Path(folder or "").is_dir():
        raise InputError(f"{name}: features.external.folder: {folder}: no such folder")
    if dataset["videos"] is None and features["source"] != "external":
        raise InputError(f"{name}: dataset.videos: null goes with features.source: external")
    return {video: str(path) for video, path in videos.items()}


def _annotation_files(name: str) -> list[str]:
    path = Path(name)
    return sorted(map(str, path.glob("*.txt"))) if path.is_dir() else [name]
