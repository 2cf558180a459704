"""What a method misses: the rows of two tables, a page of Markdown and a figure."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from actionspan.errors import counted
from actionspan.evaluation.outcomes import (
    CHARACTERISTICS,
    SHOWN_NUMBERS,
    SHOWN_THRESHOLDS,
    Bin,
    Outcomes,
)
from actionspan.files.figures import INK, QUIET, house_style, save_figure, spread_labels
from actionspan.files.markdown import markdown_table

NAMES = tuple(f"{threshold:.1f}" for threshold in SHOWN_THRESHOLDS)
TABLE_COLUMNS = (
    *("characteristic", "bin", "above", "up_to", "instances"),
    *(f"{what}@{name}" for name in NAMES for what in ("found", "missed", "misses_share")),
    "AR@100",
)
INSTANCE_COLUMNS = (
    *("video_id", "start", "end", "label"),
    *(f"best_tiou@{number}" for number in SHOWN_NUMBERS),
    *("best_start", "best_end", "best_rank"),
)
SHADES = ("#d55e00", "#eb9f66", "#f7d8c1")  # missed at 0.5, at 0.7 only, at 0.9 only

Cell = str | int | float


def table_row(row: Bin) -> list[Cell]:
    """Return a bin as the cells of `TABLE_COLUMNS`; an undefined value is an empty cell."""
    cells = [row.characteristic, row.label, row.above, row.up_to, row.instances]
    for found, missed, share in zip(row.found, row.missed, row.misses_share, strict=True):
        cells += [found, missed, share]
    return ["" if cell is None else cell for cell in [*cells, row.average_recall]]


def instance_rows(outcomes: Outcomes) -> list[list[Cell]]:
    """Return all instances as the cells of `INSTANCE_COLUMNS`, the least found first."""
    best = outcomes.result.best_tiou[:, [number - 1 for number in SHOWN_NUMBERS]]
    rows: list[list[Cell]] = []
    for index, instance in enumerate(outcomes.instances):
        video_id = outcomes.result.video_ids[outcomes.videos[index]]
        rank = int(outcomes.best_ranks[index])
        proposal = [*outcomes.best_segments[index].tolist(), rank] if rank else ["", "", ""]
        own = [video_id, instance.start, instance.end, instance.label]
        rows.append([*own, *best[index].tolist(), *proposal])
    return sorted(rows, key=lambda row: (*row[6:3:-1], row[0], row[1], row[2]))


def misses_markdown(outcomes: Outcomes, bins: Sequence[Bin], method: str, subset: str) -> str:
    """Return the page: what is counted, what stands out, and a table for each characteristic."""
    result, everything = outcomes.result, bins[0]
    lines = [
        f"# What {method} misses",
        "",
        f"The {counted(everything.instances, 'instance')} of the "
        f"{counted(len(result.video_ids), 'video')} of subset "
        f"{subset}, and the first 100 proposals a video by ActivityNet's budgets. An instance is "
        "found at tIoU t if one of its video's proposals overlaps it by at least t, and missed "
        "otherwise. AR@100 is the mean share found at tIoU 0.5, 0.55, …, 0.95. Missed instances "
        "are given in percent of the bin's instances; the last column says which share of all "
        "misses at tIoU 0.5 lies in the bin, to compare with its share of the instances.",
        "",
        f"{_missed(everything)}. {result.missing_videos:,} of the videos have no proposal at all.",
        "",
    ]
    for kind in CHARACTERISTICS:
        rows = [row for row in bins if row.characteristic == kind.name and row.instances]
        lines += [f"## {kind.title}", "", *_sentence(rows, everything), *_table(rows, everything)]
    lines += [
        f"Each instance with its best proposal, the least found first: `{method}.instances.tsv`.",
        "",
        "Bins after the false-negative analysis of Alwassel et al., Diagnosing Error in Temporal "
        "Action Detectors (ECCV 2018); those without an instance are left out here. "
        "A bin holds its upper edge, not its lower one.",
    ]
    return "\n".join(lines) + "\n"


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %"


def _missed(everything: Bin) -> str:
    parts = [
        f"{missed:,} ({_percent(missed, everything.instances)}) at tIoU {name}"
        for missed, name in zip(everything.missed, NAMES, strict=True)
    ]
    return f"Missed: {', '.join(parts)}; AR@100 is {100 * (everything.average_recall or 0):.2f} %"


def _sentence(rows: Sequence[Bin], everything: Bin) -> list[str]:
    """Say which bin has the most misses beyond its share of the instances, if any has."""
    if not everything.missed[0] or len(rows) < 2:
        return []
    excess = [(row.misses_share[0] or 0.0) - row.instances / everything.instances for row in rows]
    if max(excess) <= 0:
        return []
    most = rows[excess.index(max(excess))]
    return [
        f"Most over-represented among the misses at tIoU 0.5: **{most.label}**, with "
        f"{_percent(most.misses_share[0] or 0.0, 1)} of the misses and "
        f"{_percent(most.instances, everything.instances)} of the instances.",
        "",
    ]


def _table(rows: Sequence[Bin], everything: Bin) -> list[str]:
    names = [f"missed at {name}" for name in NAMES]
    titles = ["", "instances", "of all", *names, "AR@100", "of the misses at 0.5"]
    cells = [
        [
            row.label,
            f"{row.instances:,}",
            _percent(row.instances, everything.instances),
            *(_percent(missed, row.instances) for missed in row.missed),
            f"{100 * (row.average_recall or 0):.2f}",
            "–" if row.misses_share[0] is None else _percent(row.misses_share[0], 1),
        ]
        for row in rows
    ]
    return [*markdown_table("lrrrrrrr", titles, cells), ""]


def draw_misses(path: Path, bins: Sequence[Bin], method: str) -> None:
    """Draw a panel for each characteristic: the share of each bin missed at tIoU 0.5, 0.7, 0.9.

    Args:
        path: An .svg or .png file.
        bins: What `break_down` returned; bins without an instance are left out.
        method: Its name, for the title.
    """
    everything = bins[0]
    with house_style():
        layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08, wspace=0.04, hspace=0.04)
        figure = Figure(figsize=(9.0, 5.6), layout=layout)
        panels = figure.subplots(2, 2, sharey=True)
        for axes, kind in zip(panels.flat, CHARACTERISTICS, strict=True):
            rows = [row for row in bins if row.characteristic == kind.name and row.instances]
            _panel(axes, rows, everything)
            axes.set_title(kind.title.replace("share", "percentage"))
        for axes in panels[:, 1]:
            _name_the_shades(axes, everything)
        for axes in panels[:, 0]:
            axes.set_ylabel("instances missed")
        figure.suptitle(
            f"What {method} misses at tIoU {', '.join(NAMES)}, of {everything.instances:,} "
            "instances (below each bar: of how many; dotted: of all)",
            x=0.01, ha="left", fontsize=9, color=QUIET,
        )  # fmt: skip
        save_figure(figure, path)


def _panel(axes: Axes, rows: Sequence[Bin], everything: Bin) -> None:
    """Draw nested bars, the loosest threshold in front, and the rates of all instances."""
    missed = np.array([row.missed for row in rows]) / [[row.instances] for row in rows]  # (B, 3)
    for column in (2, 1, 0):
        axes.bar(range(len(rows)), missed[:, column], width=0.74, color=SHADES[column], lw=0)
        rate = everything.missed[column] / everything.instances
        axes.axhline(rate, color=INK, lw=0.7, ls=(0, (2, 2)), zorder=3)
    # a few bars are as wide as many are, from the left
    axes.set(ylim=(0, 1), xlim=(-0.6, max(len(rows), 5) - 0.4), xticks=range(len(rows)))
    labels = [f"{row.label.replace('%', '')}\n{row.instances:,}" for row in rows]
    axes.set_xticklabels(labels, fontsize=7.5 if len(rows) < 8 else 6.5)
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%")
    axes.grid(visible=False, axis="x")
    axes.tick_params(axis="x", length=0)


def _name_the_shades(axes: Axes, everything: Bin) -> None:
    """Name the shades at the right, each at the height of the rate of all instances."""
    rates = {
        name: missed / everything.instances
        for name, missed in zip(NAMES, everything.missed, strict=True)
    }
    heights = spread_labels(rates, 0.085)
    for name, shade in zip(NAMES, SHADES, strict=True):
        text, place = f"tIoU {name}: {100 * rates[name]:.0f}%", (1.07, heights[name])
        axes.annotate(text, xy=place, xycoords="axes fraction", va="center_baseline", fontsize=8)
        axes.plot(
            1.04, heights[name], "s", ms=6, color=shade, transform=axes.transAxes, clip_on=False
        )
