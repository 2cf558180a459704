"""The paper's tables for our runs: means and intervals beside the published numbers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from actionspan.evaluation.activitynet import Floats
from actionspan.evaluation.published import TABLES, PublishedRow, TableName
from actionspan.evaluation.resampling import (
    draw_seeds,
    draw_videos,
    mean_scores,
    percentile_interval,
    resampled_scores,
)
from actionspan.evaluation.summary import EvaluationSettings
from actionspan.evaluation.video_scores import VideoScores


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A mean over seeds and its interval, in percent; NaN where the data give none."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class MeasuredOn:
    """On what our numbers were measured, in words for people."""

    features: str
    data: str
    subset: str


@dataclass(frozen=True, kw_only=True)
class TableRow:
    """One method: our estimates (none where it is not built) and the published numbers."""

    method: str
    published_as: str
    seeds: int
    estimates: Mapping[str, Estimate]
    published: Mapping[str, str]
    source: str


def resample(
    scores: Mapping[str, VideoScores], metrics: Sequence[str], settings: EvaluationSettings
) -> dict[str, tuple[Floats, Floats]]:
    """Return each method's means (M,) and its resampled means (B, M), on the same drawn videos."""
    videos = len(next(iter(scores.values())).video_ids)
    drawn = draw_videos(videos, settings.resamples, settings.seed)
    found = {}
    for method, known in scores.items():
        values = known.of(metrics)
        seeds = draw_seeds(method, len(values), settings.resamples, settings.seed)
        found[method] = (
            mean_scores(values, known.instances),
            resampled_scores(values, known.instances, drawn, seeds),
        )
    return found


def table_rows(
    name: TableName, scores: Mapping[str, VideoScores], settings: EvaluationSettings
) -> list[TableRow]:
    """Return the rows: ours without a published number, then the paper's in its order.

    Args:
        name: Which table.
        scores: By method; at least one.
        settings: How the intervals are made.
    """
    table = TABLES[name]
    means = resample(scores, table.metrics, settings)
    published = {row.method: row for row in table.rows}
    rows = []
    for method in [*(name for name in scores if name not in published), *published]:
        none = PublishedRow(method=method, name="", values={}, source="")
        printed = published.get(method, none)
        estimates = {}
        if method in scores:
            mean, drawn = means[method]
            for column, metric in enumerate(table.metrics):
                low, high = percentile_interval(drawn[:, column], settings.confidence)
                value = float(mean[column])
                if math.isnan(value):  # some seed has none
                    low = high = value
                estimates[metric] = Estimate(value=value, low=low, high=high)
        rows.append(
            TableRow(
                method=method,
                published_as=printed.name,
                seeds=len(scores[method].values) if method in scores else 0,
                estimates=estimates,
                published=printed.values,
                source=printed.source,
            )
        )
    return rows


def heading(metric: str) -> str:
    """Return a measure's name in a table of one protocol: AR@50 of thumos14_AR@50."""
    return metric.removeprefix("thumos14_")


def table_cells(name: TableName, rows: Sequence[TableRow]) -> tuple[list[str], list[list[str]]]:
    """Return the columns and the rows of the TSV; what is not known is empty."""
    metrics = TABLES[name].metrics
    columns = ["method", "published_as", "seeds"]
    for metric in map(heading, metrics):
        columns += [metric, f"{metric}_low", f"{metric}_high", f"{metric}_published"]
    cells = []
    for row in rows:
        line = [row.method, row.published_as, str(row.seeds or "")]
        for metric in metrics:
            ours = row.estimates.get(metric)
            line += _numbers(ours) if ours is not None else ["", "", ""]
            line.append(row.published.get(metric, ""))
        cells.append([*line, row.source])
    return [*columns, "published_source"], cells


def _numbers(estimate: Estimate) -> list[str]:
    known = not math.isnan(estimate.value)
    numbers = (estimate.value, estimate.low, estimate.high)
    return [f"{number:.2f}" if known else "" for number in numbers]


def table_markdown(name: TableName, rows: Sequence[TableRow], caption: str) -> str:
    """Return the table in Markdown under its caption: value [low, high], then the published."""
    metrics = TABLES[name].metrics
    words = [heading(metric) for metric in metrics]
    titles = [
        "method",
        "published as",
        *(f"{word}, ours" for word in words),
        *(f"{word}, published" for word in words),
        "source of the published numbers",
    ]
    lines = [caption, "", _line(titles), "|---|---" + "|---:" * 2 * len(words) + "|---|"]
    for row in rows:
        ours = []
        for metric in metrics:
            estimate = row.estimates.get(metric)
            value, low, high = _numbers(estimate) if estimate is not None else ("", "", "")
            ours.append(f"{value} [{low}, {high}]" if value else "")
        printed = [row.published.get(metric, "") for metric in metrics]
        lines.append(_line([row.method, row.published_as, *ours, *printed, row.source]))
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def table_caption(
    name: TableName,
    scores: Mapping[str, VideoScores],
    measured: MeasuredOn,
    settings: EvaluationSettings,
) -> str:
    """Return what a reader must know before comparing: on what ours was measured, and how."""
    return (
        f"Table {name.removeprefix('table')} of paper 001 ({TABLES[name].title}), in percent.\n"
        f"Ours: {measured_words(scores, measured, settings)}\n"
        "The published numbers are of other features and other data: the order of the methods "
        "can be compared, the numbers cannot."
    )


def measured_words(
    scores: Mapping[str, VideoScores], measured: MeasuredOn, settings: EvaluationSettings
) -> str:
    """Return on what our scores were measured, and what their interval is, as two sentences."""
    first = next(iter(scores.values()))
    counts: dict[int, list[str]] = {}
    for method, found in scores.items():
        counts.setdefault(len(found.values), []).append(method)
    most = max(counts)
    fewer = [f"{', '.join(counts[count])}: {count}" for count in sorted(counts) if count < most]
    return (
        f"{measured.features}, on {measured.data}, subset {measured.subset} "
        f"({len(first.video_ids):,} videos with instances, {int(np.sum(first.instances)):,} "
        f"instances). Mean over {most} seed{'s' if most > 1 else ''}"
        f"{' (' + '; '.join(fewer) + ')' if fewer else ''} and, in brackets, the "
        f"{100 * settings.confidence:.4g} % interval of a bootstrap over videos and seeds "
        f"({settings.resamples:,} resamples)."
    )
