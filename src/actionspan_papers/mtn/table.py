"""Write a table of paper 001: means and intervals of our runs, and the published numbers."""

import argparse
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from actionspan.arrays import Float64
from actionspan.errors import counted
from actionspan.evaluation.settings import EvaluationSettings
from actionspan_papers.estimates import (
    Estimate,
    draw_videos,
    over_samples_and_seeds,
    resampled_scores,
    seed_scores,
)
from actionspan_papers.experiments import Cell, Experiment, Row, Table, files
from actionspan_papers.mtn.published import TABLES, PublishedRow, TableName
from actionspan_papers.mtn.scores import Scores, VideoScores, read_video_scores

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


Means = Mapping[str, tuple[Float64, Float64]]
"""By method, (S, M) means of each seed and (B, M) of each resample of the videos."""


class Measured(NamedTuple):
    """The input of a step on scores by video."""

    scores: Scores
    on: str
    """The data they were measured on."""


def read_measured(arguments: argparse.Namespace) -> Measured:
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
        for column, metric in enumerate(table.metrics):
            cell = Estimate()
            if scored is not None:
                seeds, drawn = (values[:, column] for values in means[method])
                videos, value = len(scored.video_ids), float(seeds.mean())
                cell = over_samples_and_seeds(value, [seeds], drawn, videos, settings.confidence)
                if math.isnan(value):  # some seed has none
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
    means: dict[str, tuple[Float64, Float64]] = {}
    for method, scored in scores.items():
        values, instances = scored.of(metrics), scored.instances
        means[method] = seed_scores(values, instances), resampled_scores(values, instances, drawn)
    return means


def why_not(scores: VideoScores, metric: str) -> str:
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


def _read(arguments: argparse.Namespace, settings: EvaluationSettings) -> _Read:
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
