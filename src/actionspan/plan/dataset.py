"""The data set before anything runs: its videos, their shards, its annotation files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from actionspan.dataset.sharding import MOST_SHARDS, assign_shards, find_videos, left_out
from actionspan.demo.names import demo_video_names
from actionspan.errors import InputError


class DatasetPlan:
    """The videos of a run and the shards they are worked on in.

    Attributes:
        is_demo: Whether the videos are the rendered ones.
        paths: The file of each video; empty where only external features are given.
        videos: The ids of all videos.
        shards: The video ids of each shard.
        annotations: The annotation file or folder as it is given to `dataset index`.
        annotation_files: That file, or the text files of a folder (THUMOS14's).
        passed_over: The files of the video folder that are left out, and why.
    """

    def __init__(self, config: Mapping[str, Any], name: str) -> None:
        dataset = config["dataset"]
        self.is_demo = dataset["videos"] == "demo"
        self.passed_over: dict[str, str] = {}
        if self.is_demo and dataset["annotations"] is not None:
            raise InputError(
                f"{name}: dataset.annotations: {dataset['annotations']} is not used with "
                "dataset.videos: demo; name the folder of its videos, or null for features alone"
            )
        if self.is_demo:
            files = demo_video_names(config["demo"]["videos"])
            self.paths = {Path(file).stem: f"results/dataset/demo/{file}" for file in files}
            self.annotations = "results/dataset/demo/annotations.json"
            self.annotation_files = [self.annotations]
        else:
            self.paths = _video_files(dataset["videos"], name)
            self.annotations = str(dataset["annotations"])
            self.annotation_files = _annotation_files(dataset["annotations"], name)
            if dataset["videos"] is not None:
                self.passed_over = left_out(Path(dataset["videos"]))
        _check_external(config, name)
        self.videos = list(self.paths)
        per_shard = dataset["videos_per_shard"]
        self.shards = assign_shards(self.videos, per_shard)
        if len(self.shards) > MOST_SHARDS:
            raise InputError(
                f"{name}: dataset.videos_per_shard: {per_shard} makes {len(self.shards)} shards; "
                f"at most {MOST_SHARDS} are planned: give {-(-len(self.videos) // MOST_SHARDS)} "
                "or more, or auto"
            )

    def shard_videos(self, wildcards: Any) -> list[str]:
        """Return the files of the videos of a shard."""
        return [self.paths[video] for video in self.shards[wildcards.shard]]


def _video_files(folder: str | None, name: str) -> dict[str, str]:
    """Return {video id: path}."""
    if folder is None:
        return {}
    videos = find_videos(Path(folder))
    if not videos:
        raise InputError(f"{name}: dataset.videos: no video in {folder}")
    return {video: str(path) for video, path in videos.items()}


def _annotation_files(annotations: str | None, name: str) -> list[str]:
    if not (annotations and Path(annotations).exists()):
        raise InputError(
            f"{name}: dataset.annotations: {annotations}: no such file; training needs "
            "annotations (`actionspan propose` finds proposals in videos without any)"
        )
    path = Path(annotations)
    files = sorted(map(str, path.glob("*.txt"))) if path.is_dir() else [annotations]
    if not files:
        raise InputError(
            f"{name}: dataset.annotations: {annotations}: a folder without .txt files; "
            "those of THUMOS14 are <Class>_val.txt and <Class>_test.txt"
        )
    return files


def _check_external(config: Mapping[str, Any], name: str) -> None:
    features = config["features"]
    folder = features["external"]["folder"]
    if features["source"] == "external" and not (folder and Path(folder).is_dir()):
        raise InputError(f"{name}: features.external.folder: {folder}: no such folder")
    if config["dataset"]["videos"] is None and features["source"] != "external":
        raise InputError(f"{name}: dataset.videos: null goes with features.source: external")
