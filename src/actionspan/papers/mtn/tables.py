"""The paper's tables for our runs: means and intervals beside the published numbers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from actionspan.evaluation.activitynet import Floats
from actionspan.evaluation.records import EvaluationSettings
from actionspan.evaluation.resampling import (
    draw_videos,
    interval,
    resampled_scores,
    seed_scores,
    seeds_half_width,
)
from actionspan.papers.mtn.published import TABLES, PublishedRow, TableName
from actionspan.papers.mtn.video_scores import VideoScores

TOO_FEW = "too few proposals"
TOO_MANY = "too many proposals"
NO_FRAMES = "no frame rates"
_WHY_NOT = {
    TOO_FEW: "the lists are shorter than that AN (proposals.suppression.keep and "
    "evaluation.baseline.proposals set their length)",
    TOO_MANY: "one percent of the lists is more than that AN",
    NO_FRAMES: "THUMOS14's protocol needs the frame rate of each video",
}


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A mean over seeds and its interval, in percent; NaN where the data give none, and why."""

    value: float
    low: float
    high: float
    why_not: str = ""


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
    """Return each method's means by seed (S, M) and resampled ones (B, M), on the same videos."""
    videos = len(next(iter(scores.values())).video_ids)
    drawn = draw_videos(videos, settings.resamples, settings.seed)
    found = {}
    for method, known in scores.items():
        values = known.of(metrics)
        found[method] = (
            seed_scores(values, known.instances),
            resampled_scores(values, known.instances, drawn),
        )
    return found


def why_not(scores: VideoScores, metric: str) -> str:
    """Return why a method has no value of one of THUMOS14's measures, in a few words."""
    number = int(metric.rpartition("@")[2])
    with_any = np.maximum((scores.proposals > 0).sum(axis=1), 1)  # (S,) videos that take part
    lengths = scores.proposals.sum(axis=1) / with_any  # (S,) AN at 100 percent of the lists
    if (lengths < number).any():
        return TOO_FEW
    return TOO_MANY if (lengths / 100 > number).any() else NO_FRAMES


def table_rows(
    name: TableName, scores: Mapping[str, VideoScores], settings: EvaluationSettings
) -> list[TableRow]:
    """Return the rows: the paper's in its order; ours without a published number above or below.

    Args:
        name: Which table.
        scores: By method; at least one.
        settings: How the intervals are made.
    """
    table = TABLES[name]
    means = resample(scores, table.metrics, settings)
    published = {row.method: row for row in table.rows}
    rows = []
    others = [name for name in scores if name not in published]
    for method in [*published, *others] if table.others_below else [*others, *published]:
        none = PublishedRow(method=method, name="", values={}, source="")
        printed = published.get(method, none)
        estimates = {}
        if method in scores:
            seeds, drawn = means[method]
            for column, metric in enumerate(table.metrics):
                estimate = _estimate(
                    seeds[:, column], drawn[:, column], len(scores[method].video_ids), settings
                )
                if math.isnan(estimate.value):
                    estimate = replace(estimate, why_not=why_not(scores[method], metric))
                estimates[metric] = estimate
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


def _estimate(seeds: Floats, drawn: Floats, videos: int, settings: EvaluationSettings) -> Estimate:
    """Return one measure from its (S,) means by seed and (B,) resampled means."""
    value = float(seeds.mean())
    if math.isnan(value):  # some seed has none
        return Estimate(value=value, low=value, high=value)
    half = seeds_half_width([seeds], settings.confidence)
    low, high = interval(value, drawn, videos, half, settings.confidence)
    # two seeds can have an interval wider than what a percentage can be
    return Estimate(value=value, low=max(low, min(value, 0)), high=min(high, max(value, 100)))


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
            missing = estimate.why_not if estimate is not None else ""
            ours.append(f"{value} [{low}, {high}]" if value else missing)
        printed = [row.published.get(metric, "") for metric in metrics]
        lines.append(_line([row.method, row.published_as, *ours, *printed, row.source]))
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def table_caption(
    name: TableName,
    rows: Sequence[TableRow],
    scores: Mapping[str, VideoScores],
    measured: MeasuredOn,
    settings: EvaluationSettings,
) -> str:
    """Return what a reader must know before comparing: on what ours was measured, and how."""
    reasons = {one.why_not: None for row in rows for one in row.estimates.values() if one.why_not}
    notes = "".join(f"\nNo value, {reason}: {_WHY_NOT[reason]}." for reason in reasons)
    return (
        f"Table {name.removeprefix('table')} of paper 001 ({TABLES[name].title}), in percent.\n"
        f"Ours: {measured_words(scores, measured, settings)}\n"
        "The published numbers are of other features and other data: the order of the methods "
        f"can be compared, the numbers cannot.{notes}"
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
    bootstrap = f"bootstrap, {settings.resamples:,} resamples"
    if most == 1:
        over = f"over videos only ({bootstrap}), which says nothing about another training"
    else:
        over = f"over videos ({bootstrap}) and seeds (Student's t)"
        if 1 in counts:
            over += ", of one seed over videos only"
    return (
        f"{measured.features}, on {measured.data}, subset {measured.subset} "
        f"({len(first.video_ids):,} videos with instances, {int(np.sum(first.instances)):,} "
        f"instances). Mean over {most} seed{'s' if most > 1 else ''}"
        f"{' (' + '; '.join(fewer) + ')' if fewer else ''} and, in brackets, the "
        f"{100 * settings.confidence:.4g} % interval {over}."
    )
