"""A figure for each video: boundary curves, the truth where it is known, and ranked proposals."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, MultipleLocator
from numpy.typing import ArrayLike

from actionspan.arrays import Float64
from actionspan.dataset.tables import Instance
from actionspan.files.figures import INK, QUIET, RULE, house_style, save_figure

SHOWN_PROPOSALS = 15
START, END, ACTION, TRUTH = "#0072b2", "#d55e00", "#8d9299", "#009e73"
SHADES = LinearSegmentedColormap.from_list("score", ["#cfdcea", "#7fa6cc", "#2f6ca6", "#123f6d"])


def draw_timeline(
    path: Path,
    video_id: str,
    duration: float,
    probabilities: ArrayLike | None,
    instances: Sequence[Instance],
    segments: ArrayLike,
    scores: ArrayLike,
    motion: ArrayLike | None = None,
) -> None:
    """Draw one video's timeline as SVG or PNG, with its best 15 proposals.

    Args:
        path: An .svg or .png file.
        video_id: The figure's title.
        duration: Of the video, in seconds.
        probabilities: (N, 3) start, actionness and end of N equal parts of the video, if a
            model made them.
        instances: The true instances, if they are known.
        segments: (P, 2) starts and ends of the proposals in seconds.
        scores: (P,) their scores.
        motion: (M,) a measure of motion of M equal parts, drawn where there are no probabilities.
    """
    boxes = np.asarray(segments, dtype=np.float64).reshape(-1, 2)
    values = np.asarray(scores, dtype=np.float64)
    best = np.argsort(-values, kind="stable")[:SHOWN_PROPOSALS]
    lanes = _lanes(instances)
    # the panels from the top, and their heights in inches
    heights = {}
    if probabilities is not None or motion is not None:
        heights["curves"] = 1.5
    if lanes:
        heights["truth"] = 0.16 + 0.2 * (max(lanes) + 1)
    heights["proposals"] = 0.3 + 0.155 * max(len(best), 2)
    with house_style():
        figure = Figure(figsize=(9.0, 0.85 + sum(heights.values())), layout="constrained")
        layout: list[Any] = [[name] for name in heights]
        axes_of = figure.subplot_mosaic(layout, sharex=True, height_ratios=list(heights.values()))
        panels = list(axes_of.values())
        panels[0].set_title(video_id, fontsize=11)
        if "curves" in axes_of:
            _curves(axes_of["curves"], duration, probabilities, motion)
        if lanes:
            _truth(axes_of["truth"], instances, lanes, duration)
        _proposals(axes_of["proposals"], boxes[best], values[best], len(values))
        for axes in panels:
            for instance in instances:
                axes.axvspan(instance.start, instance.end, color=TRUTH, alpha=0.09, lw=0, zorder=0)
        _time_axis(panels[-1], duration)
        figure.align_ylabels(panels)
        save_figure(figure, path)


def _curves(
    axes: Axes, duration: float, probabilities: ArrayLike | None, motion: ArrayLike | None
) -> None:
    """Draw actionness as a filled area and both boundary curves, or motion alone."""
    axes.grid(visible=False, axis="x")
    values = np.asarray(motion if probabilities is None else probabilities, dtype=np.float64)
    time = (np.arange(len(values)) + 0.5) * duration / len(values)
    if probabilities is None:
        axes.fill_between(time, values, color=ACTION, alpha=0.25, lw=0)
        axes.plot(time, values, color=ACTION, lw=1.2, label="motion")
        axes.set(ylim=(0, float(values.max()) * 1.06 if values.any() else 1.0), ylabel="motion")
        axes.yaxis.set_major_locator(MaxNLocator(3))
    else:
        start, actionness, end = values.T
        axes.fill_between(time, actionness, color=ACTION, alpha=0.25, lw=0)
        axes.plot(time, actionness, color=ACTION, lw=1.1, label="actionness")
        axes.plot(time, start, color=START, lw=1.5, label="start")
        axes.plot(time, end, color=END, lw=1.5, ls=(0, (4, 1.2)), label="end")
        axes.set(ylim=(0, 1.02), yticks=[0, 0.5, 1], ylabel="probability")
    space: dict[str, Any] = {"borderaxespad": 0.1, "handlelength": 1.8, "columnspacing": 1.4}
    look: dict[str, Any] = {"ncols": 3, "frameon": False, "labelcolor": "linecolor"}
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), **look, **space)


def _lanes(instances: Sequence[Instance]) -> list[int]:
    """Return for each instance the first lane in which it overlaps no earlier instance."""
    ends: list[float] = []
    lanes = [0] * len(instances)
    for index, instance in sorted(enumerate(instances), key=lambda item: item[1].start):
        free = (lane for lane, end in enumerate(ends) if end <= instance.start)
        lane = next(free, len(ends))
        if lane == len(ends):
            ends.append(0.0)
        ends[lane], lanes[index] = instance.end, lane
    return lanes


def _truth(
    axes: Axes, instances: Sequence[Instance], lanes: Sequence[int], duration: float
) -> None:
    """Draw the true instances as bars, named inside or behind where there is room."""
    for instance, lane in zip(instances, lanes, strict=True):
        length = instance.end - instance.start
        axes.barh(lane, length, left=instance.start, height=0.72, color=TRUTH, lw=0, zorder=2)
        width = 0.011 * (len(instance.label) + 1) * duration
        later = [
            other.start
            for other, other_lane in zip(instances, lanes, strict=True)
            if other_lane == lane and other.start >= instance.end
        ]
        if width <= length:
            at, side, colour = instance.start + length / 2, "center", "white"
        elif instance.end + width <= min(later, default=duration):
            at, side, colour = instance.end + 0.004 * duration, "left", TRUTH
        else:
            continue
        axes.text(
            at, lane, instance.label, color=colour, fontsize=7.5,
            ha=side, va="center_baseline", zorder=3,
        )  # fmt: skip
    axes.set(ylim=(max(lanes) + 0.6, -0.6), yticks=[], ylabel="truth")
    _bare(axes)


def _proposals(axes: Axes, segments: Float64, scores: Float64, total: int) -> None:
    """Draw the best proposals from the top, darker for higher scores."""
    top, least = (scores.max(), min(scores.min(), 0.0)) if len(scores) else (1.0, 0.0)
    for rank, ((start, end), score) in enumerate(zip(segments, scores, strict=True)):
        shade = SHADES((score - least) / max(top - least, 1e-12))
        axes.barh(rank, end - start, left=start, height=0.74, color=shade, lw=0, zorder=2)
        axes.annotate(
            f"{score:.2f}", xy=(1.008, rank), xycoords=("axes fraction", "data"),
            va="center_baseline", fontsize=7, color=QUIET,
        )  # fmt: skip
    shown = max(len(scores), 2)
    axes.set(ylim=(shown - 0.35, -0.65), yticks=range(0, len(scores), 2))
    axes.set_yticklabels([str(rank + 1) for rank in range(0, len(scores), 2)], fontsize=7)
    axes.set_ylabel("proposals" if len(scores) == total else f"best {len(scores)} of {total:,}")
    if not len(scores):
        axes.text(0.5, 0.5, "no proposals", transform=axes.transAxes, ha="center", color=INK)
    _bare(axes)


def _bare(axes: Axes) -> None:
    axes.grid(visible=False, axis="y")
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(left=False, bottom=False)


def _time_axis(axes: Axes, duration: float) -> None:
    """Mark whole seconds or minutes: about ten marks over the video."""
    steps = (0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)
    step = next((step for step in steps if duration / step <= 12), 7200)
    axes.xaxis.set_major_locator(MultipleLocator(step))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _clock(value, step)))
    axes.set_xlim(0, duration)
    axes.spines["bottom"].set(visible=True, color=RULE)
    axes.set_xlabel(
        "time (s)" if step < 5 else "time (min:s)" if duration < 3600 else "time (h:min:s)"
    )


def _clock(seconds: float, step: float) -> str:
    if step < 5:
        return f"{seconds:g}"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
