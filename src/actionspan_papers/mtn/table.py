"""Write a table of paper 001: means and intervals of our runs, and the published numbers.

Our numbers are of the tables of scores by video, for all seeds of all methods, in percent.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from actionspan.arrays import Float64, Int64
from actionspan.errors import InputError, counted
from actionspan.evaluation.settings import EvaluationSettings
from actionspan.storage.writing import read_tsv
from actionspan_papers.estimates import (
    Estimate,
    Resampled,
    draw_videos,
    resampled_scores,
    seed_scores,
)
from actionspan_papers.experiments import Cell, Experiment, Row, Table, files
from actionspan_papers.kinds import Flags
from actionspan_papers.mtn.published import METRICS, TABLES, THUMOS14, PublishedRow, TableName
from actionspan_papers.runs import named_files

_WHY_NOT = {
    "too few proposals": "the lists are shorter than that AN (proposals.suppression.keep and "
    "evaluation.baseline.proposals set their length)",
    "too many proposals": "one percent of the lists is more than that AN",
    "no frame rates": "THUMOS14's protocol needs the frame rate of each video",
}
FEATURES = {"features": "features.h5, with attributes that describe it"}
"""The flag of the file with the measured data."""
SCORES: Mapping[str, Any] = {
    "videos": files(
        "{method}.tsv and {method}-seedN.tsv, the scores by video of each method and seed"
    ),
    **FEATURES,
    "subset": {"default": "validation", "help": "default: validation"},
}
"""The flags of a step on scores by video."""


@dataclass(frozen=True, kw_only=True)
class _VideoScores:
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


Scores = Mapping[str, _VideoScores]
"""By method."""


def read_video_scores(paths: Sequence[Path]) -> dict[str, _VideoScores]:
    """Read `{method}.tsv` and `{method}-seedN.tsv` of any methods, by method.

    Raises:
        InputError: A file is not such a table, two are of one method and seed, or two are of
            different ground truth.
    """
    scores = {}
    first: tuple[Path, dict[str, int]] | None = None
    form = "results/evaluation/videos/{method}.tsv"
    for method, seeds in named_files([path.stem for path in paths], paths, form).items():
        values, counts = [], []
        for path in seeds.values():
            table = _read_scores(path)
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
        scores[method] = _VideoScores(
            method=method,
            video_ids=tuple(instances),
            instances=np.array(list(instances.values()), dtype=np.int64),
            values=np.array(values, dtype=np.float64),
            seeds=tuple(seeds),
            proposals=np.array(counts, dtype=np.int64),
        )
    return scores


def _read_scores(path: Path) -> dict[str, tuple[int, int, list[float]]]:
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


Means = Mapping[str, Mapping[str, Resampled]]
"""By method and measure, its instance-weighted mean over the videos."""


class Measured(NamedTuple):
    """The input of a step on scores by video."""

    scores: Scores
    on: str
    """The data they were measured on."""


def read_measured(arguments: Flags) -> Measured:
    """Read the scores by video that the flags name."""
    measured = f"{measured_on(arguments.features)}, subset {arguments.subset}"
    return Measured(read_video_scores(arguments.videos), measured)


def measured_on(features: Path) -> str:
    """Return a description of the scored data, from the attributes of features.h5."""
    from actionspan.features.store import read_description

    return ", on ".join(read_description(features))


def table_rows(name: TableName, scores: Scores, settings: EvaluationSettings) -> list[Row]:
    """Return the rows: the paper's in its order; ours without a published number above or below.

    The scores are of at least one method.
    """
    table = TABLES[name]
    means = resample(scores, table.metrics, settings)
    others = [name for name in scores if name not in table.rows]
    rows: list[Row] = []
    for method in [*table.rows, *others] if table.others_below else [*others, *table.rows]:
        printed, scored = table.rows.get(method, PublishedRow()), scores.get(method)
        row: dict[str, Cell] = {"method": method, "published_as": printed.name}
        row["seeds"] = "" if scored is None else len(scored.values)
        for metric in table.metrics:
            cell = Estimate()
            if scored is not None:
                cell = means[method][metric].estimate(settings.confidence)
                if math.isnan(cell.value):  # some seed has none
                    cell = replace(cell, why_not=why_not(scored, metric))
            # two seeds can have an interval wider than the range of a percentage
            row[heading(metric)] = cell.percentage()
            row[f"{heading(metric)}_published"] = printed.values.get(metric, "")
        rows.append({**row, "published_source": printed.source})
    return rows


def resample(scores: Scores, metrics: Sequence[str], settings: EvaluationSettings) -> Means:
    """Return the means of some measures, resampled on the same videos."""
    videos = len(next(iter(scores.values())).video_ids)
    drawn = draw_videos(videos, settings.resamples, settings.seed)
    means: dict[str, dict[str, Resampled]] = {}
    for method, scored in scores.items():
        values, instances = scored.of(metrics), scored.instances
        both = seed_scores(values, instances).T, resampled_scores(values, instances, drawn).T
        means[method] = {
            metric: Resampled(seeds=seeds, drawn=resampled, samples=videos)
            for metric, seeds, resampled in zip(metrics, *both, strict=True)
        }
    return means


def why_not(scores: _VideoScores, metric: str) -> str:
    """Return why a method has no value of one of THUMOS14's measures, in a few words."""
    number = int(metric.rpartition("@")[2])
    with_any = np.maximum((scores.proposals > 0).sum(axis=1), 1)  # (S,) videos that take part
    lengths = scores.proposals.sum(axis=1) / with_any  # (S,) AN at 100 percent of the lists
    too_few, too_many, no_rates = _WHY_NOT
    if (lengths < number).any():
        return too_few
    return too_many if (lengths / 100 > number).any() else no_rates


def heading(metric: str) -> str:
    """Return a measure's name in a table of one protocol: AR@50 of thumos14_AR@50."""
    return metric.removeprefix("thumos14_")


def measured_words(scores: Scores, measured: str, settings: EvaluationSettings) -> str:
    """Return on what our scores were measured, and what their interval is, as two sentences."""
    first = next(iter(scores.values()))
    by_count = defaultdict(list)
    for method, scored in scores.items():
        by_count[len(scored.values)].append(method)
    *fewer, most = sorted(by_count)
    exceptions = "; ".join(f"{', '.join(by_count[count])}: {count}" for count in fewer)
    bootstrap = f"bootstrap, {settings.resamples:,} resamples"
    if most == 1:
        over = f"over videos only ({bootstrap}), which shows nothing about another training"
    else:
        over = f"over videos ({bootstrap}) and seeds (Student's t)"
        over += ", of one seed over videos only" if 1 in fewer else ""
    return (
        f"{measured} ({counted(len(first.video_ids), 'video')} with instances, "
        f"{counted(int(first.instances.sum()), 'instance')}). Mean over {counted(most, 'seed')}"
        f"{f' ({exceptions})' if exceptions else ''} and, in brackets, the "
        f"{100 * settings.confidence:.4g} % interval {over}."
    )


_Read = tuple[TableName, Measured, list[Row]]


def _read(arguments: Flags, settings: EvaluationSettings) -> _Read:
    name, measured = arguments.table, read_measured(arguments)
    return name, measured, table_rows(name, measured.scores, settings)


def _table(_: object, read: _Read, settings: EvaluationSettings) -> Table:
    """Return the table, and the notes to read before comparing."""
    name, measured, rows = read
    table, metrics = TABLES[name], list(map(heading, TABLES[name].metrics))
    cells = (cell for row in rows for cell in row.values() if isinstance(cell, Estimate))
    reasons = dict.fromkeys(cell.why_not for cell in cells if cell.why_not)
    caption = [
        f"Table {name.removeprefix('table')} of paper 001 ({table.title}), in percent.",
        f"Ours: {measured_words(*measured, settings)}",
        "The published numbers are of other features and other data: the order of the methods "
        "can be compared, the numbers cannot.",
        *(f"No value, {reason}: {_WHY_NOT[reason]}." for reason in reasons),
    ]
    # in each of the paper's tables MTN is above BSN
    ours = {row["method"]: cast(Mapping[str, Estimate], row) for row in rows}
    below = [one for one in metrics if ours["mtn"][one].value <= ours["origin"][one].value]
    if below:
        lost = ", ".join(below)
        caption += [f"MTN is not above BSN (origin) here in {lost}; in the paper it is in all."]
    titles = {"method": "method", "published_as": "published as"}
    titles |= {metric: f"{metric}, ours" for metric in metrics}
    titles |= {f"{metric}_published": f"{metric}, published" for metric in metrics}
    titles |= {"published_source": "source of the published numbers"}
    return Table(caption=caption, titles=titles, align=f"ll{'r' * 2 * len(metrics)}l")


EXPERIMENT = Experiment(
    inputs={"table": {"required": True, "choices": list(TABLES), "help": "which"}, **SCORES},
    read=_read,
    rows=lambda read, _: read[2],
    table=_table,
    settings=(EvaluationSettings,),
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
