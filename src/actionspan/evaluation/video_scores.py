"""The tables of scores by video, read for all seeds of all methods, in percent."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from actionspan.errors import InputError
from actionspan.evaluation.activitynet import Floats, Integers
from actionspan.storage import read_tsv

ACTIVITYNET_METRICS = ("AR@1", "AR@5", "AR@10", "AR@50", "AR@100", "AUC")
THUMOS14_METRICS = tuple(f"thumos14_AR@{number}" for number in (50, 100, 200, 500))
METRICS = ACTIVITYNET_METRICS + THUMOS14_METRICS


@dataclass(frozen=True, kw_only=True)
class VideoScores:
    """What one method reaches in each video, for each of its seeds."""

    method: str
    video_ids: tuple[str, ...]
    """The V ground-truth videos with instances, sorted."""
    instances: Integers
    """(V,) how many instances each has."""
    values: Floats
    """(S, V, K) the measures `METRICS` in percent; NaN where there is none."""

    def of(self, metrics: Sequence[str]) -> Floats:
        """Return (S, V, M) the values of some measures."""
        return self.values[:, :, [METRICS.index(metric) for metric in metrics]]


def name_and_seed(name: str) -> tuple[str, int]:
    """Return the method or model of a name and the number of its seed: mtn and 2 of mtn-seed2."""
    found = re.fullmatch(r"(.+?)(?:-seed([2-9]|[1-9][0-9]+))?", name)
    assert found is not None, "a name has a letter at least"
    return found[1], int(found[2] or 1)


def by_method(names: Sequence[str], paths: Sequence[Path]) -> dict[str, list[Path]]:
    """Return the files of each method, in the order of its seeds; methods in the order given.

    Args:
        names: The name of each file's method and seed, e.g. mtn-seed2.
        paths: The files.

    Raises:
        InputError: Two files are of one method and seed.
    """
    found: dict[str, dict[int, Path]] = {}
    for name, path in zip(names, paths, strict=True):
        method, seed = name_and_seed(name)
        seeds = found.setdefault(method, {})
        if seed in seeds:
            raise InputError(f"{path}: {name} is in {seeds[seed]} already")
        seeds[seed] = path
    return {method: [seeds[seed] for seed in sorted(seeds)] for method, seeds in found.items()}


def read_video_scores(paths: Sequence[Path]) -> dict[str, VideoScores]:
    """Read `{method}.tsv` and `{method}-seedN.tsv` of any methods, by method.

    Raises:
        InputError: A file is not such a table, two are of one method and seed, or two are of
            different ground truth.
    """
    scores = {}
    first: tuple[Path, dict[str, int]] | None = None
    for method, files in by_method([path.stem for path in paths], paths).items():
        planes = []
        for path in files:
            instances, values = _read(path)
            if first is None:
                first = path, instances
            elif instances != first[1]:
                different = sorted(instances.items() ^ first[1].items())[0][0]
                raise InputError(
                    f"{path}: video {different!r} is not as in {first[0]}; "
                    "only scores on the same ground truth stand in one table"
                )
            planes.append([values[video_id] for video_id in sorted(values)])
        scores[method] = VideoScores(
            method=method,
            video_ids=tuple(sorted(instances)),
            instances=np.array([instances[name] for name in sorted(instances)], dtype=np.int64),
            values=np.array(planes, dtype=np.float64),
        )
    return scores


def _read(path: Path) -> tuple[dict[str, int], dict[str, list[float]]]:
    """Return the instances and the values of each video of one table."""
    instances: dict[str, int] = {}
    values: dict[str, list[float]] = {}
    rows = read_tsv(path)
    if not rows:
        raise InputError(f"{path}: no video")
    for column in ("video_id", "instances", *METRICS):
        if column not in rows[0]:
            raise InputError(f"{path}: no column {column!r}")
    for number, row in enumerate(rows, start=2):
        video_id = row["video_id"]
        if video_id in values:
            raise InputError(f"{path}: row {number}: video {video_id!r} a second time")
        try:
            instances[video_id] = int(row["instances"])
            values[video_id] = [_percent(row, metric) for metric in METRICS]
        except ValueError as error:
            raise InputError(f"{path}: row {number}: {error}") from None
        if instances[video_id] < 1:
            raise InputError(f"{path}: row {number}: {instances[video_id]} instances")
    return instances, values


def _percent(row: dict[str, str], metric: str) -> float:
    cell = row[metric]
    if not cell and metric in THUMOS14_METRICS:
        return float("nan")
    value = float(cell) * (1 if metric == "AUC" else 100)
    if not np.isfinite(value):
        raise ValueError(f"{metric} is {cell}")
    return value
