"""The tables of scores by video, read for all seeds of all methods, in percent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from actionspan.arrays import Float64, Int64
from actionspan.errors import InputError
from actionspan.storage.writing import read_tsv
from actionspan_papers.mtn.published import METRICS, THUMOS14
from actionspan_papers.runs import named_files


@dataclass(frozen=True, kw_only=True)
class VideoScores:
    """What one method reaches in each video, for each of its seeds."""

    method: str
    video_ids: tuple[str, ...]
    """The V ground-truth videos with instances, sorted."""
    instances: Int64
    """(V,) how many instances each has."""
    values: Float64
    """(S, V, K) the measures `METRICS` in percent; NaN where there is none."""
    seeds: tuple[int, ...]
    """The S numbers of the seeds: 1, 2 and 3 of mtn, mtn-seed2 and mtn-seed3."""
    proposals: Int64
    """(S, V) how many proposals each video has."""

    def of(self, metrics: Sequence[str]) -> Float64:
        """Return (S, V, M) the values of some measures."""
        return self.values[:, :, [METRICS.index(metric) for metric in metrics]]


Scores = Mapping[str, VideoScores]
"""By method."""


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
        values, counts = [], []
        for path in files.values():
            table = _read(path)
            instances = {video_id: row[0] for video_id, row in table.items()}
            first = first or (path, instances)
            if instances != first[1]:
                different = min(instances.items() ^ first[1].items())[0]
                raise InputError(
                    f"{path}: video {different!r} is not as in {first[0]}; "
                    "only scores on the same ground truth can be compared"
                )
            counts.append([row[1] for row in table.values()])
            values.append([row[2] for row in table.values()])
        scores[method] = VideoScores(
            method=method,
            video_ids=tuple(instances),
            instances=np.array(list(instances.values()), dtype=np.int64),
            values=np.array(values, dtype=np.float64),
            seeds=tuple(files),
            proposals=np.array(counts, dtype=np.int64),
        )
    return scores


def _read(path: Path) -> dict[str, tuple[int, int, list[float]]]:
    """Return instances, proposals and values of each video of a table, sorted by video."""
    table: dict[str, tuple[int, int, list[float]]] = {}
    rows = read_tsv(path)
    if not rows:
        raise InputError(f"{path}: no video")
    for column in ("video_id", "instances", "proposals", *METRICS):
        if column not in rows[0]:
            raise InputError(f"{path}: no column {column!r}")
    for number, row in enumerate(rows, start=2):
        video_id = row["video_id"]
        try:
            if video_id in table:
                raise ValueError(f"video {video_id!r} a second time")
            values = [_percent(row, metric) for metric in METRICS]
            table[video_id] = int(row["instances"]), int(row["proposals"]), values
            if table[video_id][0] < 1:
                raise ValueError(f"{row['instances']} instances")
        except ValueError as error:
            raise InputError(f"{path}: row {number}: {error}") from None
    return dict(sorted(table.items()))


def _percent(row: dict[str, str], metric: str) -> float:
    cell = row[metric]
    if not cell and metric in THUMOS14:
        return float("nan")
    value = float(cell) * (1 if metric == "AUC" else 100)
    if not np.isfinite(value):
        raise ValueError(f"{metric} is {cell}")
    return value
