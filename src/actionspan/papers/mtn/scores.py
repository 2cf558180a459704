"""The tables of scores by video, read for all seeds of all methods, in percent."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from actionspan.errors import InputError
from actionspan.evaluation.activitynet import Floats, Integers
from actionspan.files.storage import read_tsv
from actionspan.papers.runs import named_files

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
    seeds: tuple[int, ...]
    """The S numbers of the seeds: 1, 2 and 3 of mtn, mtn-seed2 and mtn-seed3."""
    proposals: Integers
    """(S, V) how many proposals each video has."""

    def of(self, metrics: Sequence[str]) -> Floats:
        """Return (S, V, M) the values of some measures."""
        return self.values[:, :, [METRICS.index(metric) for metric in metrics]]


def read_video_scores(paths: Sequence[Path]) -> dict[str, VideoScores]:
    """Read `{method}.tsv` and `{method}-seedN.tsv` of any methods, by method.

    Raises:
        InputError: A file is not such a table, two are of one method and seed, or two are of
            different ground truth.
    """
    scores = {}
    first: tuple[Path, dict[str, int]] | None = None
    form = "results/evaluation/videos/{method}.tsv"
    for method, files in named_files([path.stem for path in paths], paths, form).items():
        planes, counts = [], []
        for path in files.values():
            instances, proposals, values = _read(path)
            if first is None:
                first = path, instances
            elif instances != first[1]:
                different = sorted(instances.items() ^ first[1].items())[0][0]
                raise InputError(
                    f"{path}: video {different!r} is not as in {first[0]}; "
                    "only scores on the same ground truth stand in one table"
                )
            planes.append([values[video_id] for video_id in sorted(values)])
            counts.append([proposals[video_id] for video_id in sorted(values)])
        scores[method] = VideoScores(
            method=method,
            video_ids=tuple(sorted(instances)),
            instances=np.array([instances[name] for name in sorted(instances)], dtype=np.int64),
            values=np.array(planes, dtype=np.float64),
            seeds=tuple(files),
            proposals=np.array(counts, dtype=np.int64),
        )
    return scores


def _read(path: Path) -> tuple[dict[str, int], dict[str, int], dict[str, list[float]]]:
    """Return the instances, the proposals and the values of each video of one table."""
    instances: dict[str, int] = {}
    proposals: dict[str, int] = {}
    values: dict[str, list[float]] = {}
    rows = read_tsv(path)
    if not rows:
        raise InputError(f"{path}: no video")
    for column in ("video_id", "instances", "proposals", *METRICS):
        if column not in rows[0]:
            raise InputError(f"{path}: no column {column!r}")
    for number, row in enumerate(rows, start=2):
        video_id = row["video_id"]
        if video_id in values:
            raise InputError(f"{path}: row {number}: video {video_id!r} a second time")
        try:
            instances[video_id] = int(row["instances"])
            proposals[video_id] = int(row["proposals"])
            values[video_id] = [_percent(row, metric) for metric in METRICS]
        except ValueError as error:
            raise InputError(f"{path}: row {number}: {error}") from None
        if instances[video_id] < 1:
            raise InputError(f"{path}: row {number}: {instances[video_id]} instances")
    return instances, proposals, values


def _percent(row: dict[str, str], metric: str) -> float:
    cell = row[metric]
    if not cell and metric in THUMOS14_METRICS:
        return float("nan")
    value = float(cell) * (1 if metric == "AUC" else 100)
    if not np.isfinite(value):
        raise ValueError(f"{metric} is {cell}")
    return value
