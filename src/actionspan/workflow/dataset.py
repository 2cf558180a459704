"""The data set before anything runs: its videos, shards and annotation files, here or in S3."""

import hashlib
import importlib.util
import os
import re
import shlex
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeGuard

from actionspan.dataset.sharding import (
    MIN_SHARDS,
    MOST_SHARDS,
    assign_shards,
    choose_videos,
    scan_videos,
)
from actionspan.demo.scenario import demo_video_names
from actionspan.errors import InputError
from actionspan.jobs.memory import workers_within
from actionspan.workflow.runs import flags

_URI = re.compile(r"[a-z][a-z0-9+.-]*://")
_PLUGIN = "snakemake_storage_plugin_s3"
_KEPT = Path("results/dataset/shards/least")
_JOB_BYTES = 3 * 10**9  # memory of an encoding job, as in its rule


def is_uri(path: str | None) -> TypeGuard[str]:
    """Return whether a path of the configuration is a URI, such as `s3://bucket/videos`."""
    return path is not None and _URI.match(path) is not None


class Storage:
    """The files that people give, as inputs of rules.

    Args:
        registry: Snakemake's `storage`; without one nothing can lie in S3.
        local: Marks a file as one of this disk: Snakemake's `local`, where anything reads the mark.
    """

    def __init__(self, registry: Any = None, local: Any = None) -> None:
        self._registry, self.local = registry, local or (lambda path: path)
        self.marks = local is not None

    @property
    def holds_results(self) -> bool:
        """Whether results lie in storage (`--default-storage-provider`), not on this disk."""
        return getattr(self._registry, "default_storage_provider", None) is not None

    def given(self, paths: Iterable[str]) -> list[Any]:
        """Return files as inputs; only results are looked for where results are stored."""
        return [self._given(path) for path in paths]

    def seen(self, paths: Iterable[str], *, content: bool = False) -> str:
        """Return what differs when these files do: a parameter of the rules that read them.

        Snakemake sees newer files than results, not other ones with an older time. Results are its
        own, and of what lies in storage it asks the time.
        """
        found = hashlib.sha256()
        for path in paths:
            if not path.startswith("results/"):
                with suppress(OSError):  # missing, or in storage
                    status = os.stat(path)  # noqa: PTH116, it takes half the time
                    identity = Path(path).read_bytes() if content else b"%d" % status.st_mtime_ns
                    found.update(b"%d %b\n" % (status.st_size, identity))
        return found.hexdigest()[:16]

    def _given(self, path: str) -> Any:
        if is_uri(path):
            return self._registry.s3(path)
        return path if path.startswith("results/") else self.local(path)

    def names(self, folder: str, key: str) -> list[str]:
        """Return the names of the files of a folder in S3; sub-folders are not searched.

        Raises:
            InputError: The plugin is missing, or the folder cannot be listed; the line begins with
                `key`.
        """
        if not folder.startswith("s3://"):
            raise InputError(f"{key}: {folder}: a folder, or s3://BUCKET/FOLDER")
        if self._registry is None or importlib.util.find_spec(_PLUGIN) is None:
            raise InputError(f"{key}: {folder}: needs pip install 'actionspan[s3]'")
        from botocore.exceptions import BotoCoreError, ClientError

        # the plugin's own list_candidate_matches fails for every S3 address (0.3.6)
        inside = self._registry.s3(f"{folder}/_").flags["storage_object"]
        prefix = inside.key.removesuffix("_")
        try:
            listed = inside.s3bucket().objects.filter(Prefix=prefix, Delimiter="/")
            return [each.key.removeprefix(prefix) for each in listed if each.key != prefix]
        except (BotoCoreError, ClientError) as error:
            raise InputError(f"{key}: {folder}: cannot be listed: {error}") from None


class DatasetPlan:
    """The videos of a run and the shards they are worked on in.

    A small set has a shard for each core of its first run, if memory allows. `keep_shards` writes
    that number for later runs: another number would make other files.
    """

    def __init__(
        self, config: Mapping[str, Any], name: str, storage: Storage, cores: int | None = None
    ) -> None:
        dataset = config["dataset"]
        self._storage = storage
        self.is_demo = dataset["videos"] == "demo"
        # files of the video folder that are left out, and why
        self.passed_over: dict[str, str] = {}
        self.annotation_folder: str | None = None
        self.video_info = [dataset["video_info"]] if dataset["video_info"] else []
        if self.is_demo:
            if dataset["annotations"] is not None:
                raise InputError(
                    f"{name}: dataset.annotations: {dataset['annotations']} is not used with "
                    "dataset.videos: demo; name the folder of its videos, or null for features "
                    "alone"
                )
            files = demo_video_names(config["demo"]["videos"])
            self.paths = {Path(file).stem: f"results/dataset/demo/{file}" for file in files}
            self.annotation_files = ["results/dataset/demo/annotations.json"]
        else:
            self.paths, self.passed_over = _video_files(dataset["videos"], name, storage)
            self.annotation_files = _annotation_files(dataset["annotations"], name)
            if Path(dataset["annotations"]).is_dir():
                self.annotation_folder = dataset["annotations"]
        # whether videos lie in storage, from which each job needs its own fetched
        self.fetched = is_uri(dataset["videos"]) or (self.is_demo and storage.holds_results)
        self._newest = not (self.is_demo or self.fetched or storage.marks)
        # the flags of `dataset index` that name the source of the videos
        self.origin_flags = flags({"folder": dataset["videos"]})
        if self.is_demo:
            self.origin_flags = flags({"name": "the rendered demo set"})
        elif is_uri(dataset["videos"]):
            words = [word for item in self.passed_over.items() for word in ("--left-out", *item)]
            origin = flags({"name": f"the videos of {dataset['videos']}"})
            self.origin_flags = f"{origin} {shlex.join(words)}"
        _check_external(config, name)
        self.videos = list(self.paths)  # none where only external features are given
        per_shard = dataset["videos_per_shard"]
        self._least = self._least_shards(None if storage.holds_results else cores)
        self.shards = assign_shards(self.videos, per_shard, self._least)
        if len(self.shards) > MOST_SHARDS:
            raise InputError(
                f"{name}: dataset.videos_per_shard: {per_shard} makes {len(self.shards)} shards; "
                f"at most {MOST_SHARDS} are planned: give {-(-len(self.videos) // MOST_SHARDS)} "
                "or more, or auto"
            )

    def _least_shards(self, cores: int | None) -> int:
        if _KEPT.exists():
            return int(_KEPT.read_text())
        if Path("results/dataset/videos.tsv").exists():  # of a version without the number
            return max(MIN_SHARDS, -(-len(self.videos) // 16))
        return MIN_SHARDS if cores is None else workers_within(cores, _JOB_BYTES)

    def keep_shards(self) -> None:
        """Keep the number of shards for later runs and for jobs on other machines."""
        if self._storage.holds_results:
            return
        _KEPT.parent.mkdir(parents=True, exist_ok=True)
        _KEPT.write_text(f"{self._least}\n")

    def shard_videos(self, wildcards: Any) -> list[Any]:
        """Return a shard's inputs; of a folder on this disk the newest, as each takes time."""
        paths = [self.paths[video] for video in self.shards[wildcards.shard]]
        return self._storage.given([max(paths, key=os.path.getmtime)] if self._newest else paths)

    def other_videos(self, wildcards: Any) -> list[str]:
        """Return the other videos of a shard, which `Storage.seen` looks at."""
        inputs, ids = self.shard_videos(wildcards), self.shards[wildcards.shard] * self._newest
        return [path for video in ids if (path := self.paths[video]) not in inputs]

    def video_file(self, wildcards: Any) -> list[Any]:
        """Return the file of one video."""
        return self.missing_video(wildcards) or self._storage.given([self.paths[wildcards.video]])

    def missing_video(self, wildcards: Any) -> list[Any]:
        """Return a missing file, named by the reason, if a rule is asked for an unknown video."""
        video = getattr(wildcards, "video", None)
        if video is None or video in self.paths:
            return []
        return self._storage.given([f"{video}: no file of this video in dataset.videos"])

    def fetched_videos(self, wildcards: Any) -> list[Any]:
        """Return the files of a shard's videos if a job that reads its table needs them fetched."""
        return self.shard_videos(wildcards) if self.fetched else []

    def first_fetched(self, most: int) -> list[Any]:
        """Return the files of the first videos by name if a job needs them fetched.

        A rejected one is not replaced by another: the plan cannot know.
        """
        first = sorted(self.paths)[:most] if self.fetched else []
        return self._storage.given(self.paths[video] for video in first)


def _video_files(
    folder: str | None, name: str, storage: Storage
) -> tuple[dict[str, str], dict[str, str]]:
    """Return {video id: path}, and {path: why it is passed over}."""
    if folder is None:
        return {}, {}
    if is_uri(folder):
        folder = folder.rstrip("/")
        names = storage.names(folder, f"{name}: dataset.videos")
        videos, passed = choose_videos(folder, names)
    else:
        found, passed = scan_videos(Path(folder))
        videos = {video: _word(Path(path)) for video, path in found.items()}
    if not videos:
        raise InputError(f"{name}: dataset.videos: no video in {folder}")
    return videos, passed


def _word(path: Path) -> str:
    """Return a path that no command takes for a flag, as it would `-x.mp4`."""
    return str(path.absolute() if str(path).startswith("-") else path)


def _annotation_files(annotations: str | None, name: str) -> list[str]:
    if annotations and is_uri(annotations):
        return [annotations]  # whether it exists Snakemake asks
    if not (annotations and Path(annotations).exists()):
        raise InputError(
            f"{name}: dataset.annotations: {annotations}: no such file; training needs "
            "annotations (`actionspan propose` finds proposals in videos without any)"
        )
    path = Path(annotations)
    if not path.is_dir():
        return [annotations]
    from actionspan.annotations.formats.registry import folder_files, folder_suffixes

    files = [_word(file) for file in folder_files(path)]
    if not files:
        reason = f"a folder without annotation files ({', '.join(folder_suffixes())})"
        raise InputError(f"{name}: dataset.annotations: {annotations}: {reason}")
    return files


def _check_external(config: Mapping[str, Any], name: str) -> None:
    features = config["features"]
    folder = features["external"]["folder"]
    if features["source"] == "external" and not (folder and Path(folder).is_dir()):
        raise InputError(f"{name}: features.external.folder: {folder}: no such folder")
    if config["dataset"]["videos"] is None and features["source"] != "external":
        raise InputError(f"{name}: dataset.videos: null goes with features.source: external")
