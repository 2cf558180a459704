"""A figure for each video: boundary curves, the truth where it is known, and ranked proposals.

The names of true instances stand in their bars, behind them or in rows below: none is left out,
none covers another.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, MultipleLocator
from numpy.typing import ArrayLike

from actionspan.annotations.tables import Instance
from actionspan.arrays import Float64
from actionspan.storage.figures import BOX, QUIET, RULE, fonts_for, house_style, save_figure

_SHOWN_PROPOSALS = 15
START, END, _ACTION, TRUTH = "#0072b2", "#d55e00", "#8d9299", "#009e73"
SHADES = LinearSegmentedColormap.from_list("score", ["#cfdcea", "#7fa6cc", "#2f6ca6", "#123f6d"])
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)
_NO_FONT = f"{BOX}: a character that no font of this machine has (install Noto Sans, Noto Sans CJK)"
_CHARACTER = 0.011  # of the axis: the width of a letter
_LONGEST = 90  # letters of a name


class Inside(NamedTuple):
    """A name in the middle of its bar, or behind it."""

    lane: int
    at: float  # its middle, or its left end
    text: str
    behind: bool


class Below(NamedTuple):
    """A name in a row below all bars, of one instance or of several that follow each other."""

    row: int
    at: float  # its middle
    text: str
    start: float  # of the first instance
    end: float  # of the last one


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
    """Draw one video's timeline as .svg or .png, with its best 15 proposals.

    Args:
        path: Of the figure.
        video_id: Its title.
        duration: Of the video, in seconds.
        probabilities: (N, 3) start, actionness and end of N equal parts, if a model made them.
        instances: The true instances, if they are known.
        segments: (P, 2) starts and ends of the proposals in seconds.
        scores: (P,) their scores.
        motion: (M,) a measure of motion of M equal parts, drawn where probabilities are missing.
    """
    boxes = np.asarray(segments, dtype=np.float64).reshape(-1, 2)
    values = np.asarray(scores, dtype=np.float64)
    best = np.argsort(-values, kind="stable")[:_SHOWN_PROPOSALS]
    texts = [video_id, *(instance.label for instance in instances)]
    with house_style(), fonts_for(texts) as drawable:
        known = [replace(each, label=shortened(drawable[each.label])) for each in instances]
        lanes = lanes_of(known)
        inside, below = place_names(known, lanes, duration)
        still = probabilities is None and motion is not None and not np.any(motion)
        # the panels from the top, and their heights in inches
        heights = {}
        if probabilities is not None or motion is not None:
            heights["curves"] = 0.4 if still else 1.5
        if lanes:
            rows = max((name.row + 1 for name in below), default=0)
            heights["truth"] = 0.16 + 0.2 * (max(lanes) + 1) + 0.16 * rows
        heights["proposals"] = 0.3 + 0.155 * max(len(best), 2)
        figure = Figure(figsize=(9.0, 0.85 + sum(heights.values())), layout="constrained")
        layout: list[Any] = [[name] for name in heights]
        axes_of = figure.subplot_mosaic(layout, sharex=True, height_ratios=list(heights.values()))
        panels = list(axes_of.values())
        panels[0].set_title(shortened(drawable[video_id]), fontsize=11)
        if still:
            _note(axes_of["curves"], "nothing moves")
        elif "curves" in axes_of:
            _curves(axes_of["curves"], duration, probabilities, motion)
        if lanes:
            _truth(axes_of["truth"], known, lanes, inside, below)
        _proposals(axes_of["proposals"], boxes[best], values[best], len(values))
        for axes in panels:
            for instance in instances:
                axes.axvspan(instance.start, instance.end, color=TRUTH, alpha=0.09, lw=0, zorder=0)
        _time_axis(panels[-1], duration)
        if any(drawable[text] != text for text in texts):
            panels[-1].annotate(
                _NO_FONT, xy=(0, 0), xytext=(0, -34), xycoords="axes fraction",
                textcoords="offset points", va="center_baseline", fontsize=7, color=QUIET,
            )  # fmt: skip
        if len(best) > 1:
            _scale(axes_of["proposals"], values[best], heights["proposals"])
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
        axes.fill_between(time, values, color=_ACTION, alpha=0.25, lw=0)
        axes.plot(time, values, color=_ACTION, lw=1.2, label="motion")
        axes.set(ylim=(0, float(values.max()) * 1.06), ylabel="motion (pixels\na frame)")
        axes.yaxis.set_major_locator(MaxNLocator(3))
    else:
        start, actionness, end = values.T
        axes.fill_between(time, actionness, color=_ACTION, alpha=0.25, lw=0)
        axes.plot(time, actionness, color=_ACTION, lw=1.1, label="actionness")
        axes.plot(time, start, color=START, lw=1.5, label="start")
        axes.plot(time, end, color=END, lw=1.5, ls=(0, (4, 1.2)), label="end")
        axes.set(ylim=(0, 1.02), yticks=[0, 0.5, 1], ylabel="probability")
    space: dict[str, Any] = {"borderaxespad": 0.1, "handlelength": 1.8, "columnspacing": 1.4}
    look: dict[str, Any] = {"ncols": 3, "frameon": False, "labelcolor": "linecolor"}
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), **look, **space)


def _truth(
    axes: Axes,
    instances: Sequence[Instance],
    lanes: Sequence[int],
    inside: Sequence[Inside],
    below: Sequence[Below],
) -> None:
    """Draw the true instances as bars, each with its name; a white edge parts those that touch."""
    for instance, lane in zip(instances, lanes, strict=True):
        axes.barh(
            lane, instance.end - instance.start, left=instance.start, height=0.72,
            color=TRUTH, edgecolor="white", linewidth=0.8, zorder=2,
        )  # fmt: skip
    look: dict[str, Any] = {"fontsize": 7.5, "va": "center_baseline", "zorder": 3}
    for name in inside:
        colour, side = (TRUTH, "left") if name.behind else ("white", "center")
        axes.text(name.at, name.lane, name.text, color=colour, ha=side, **look)
    first = max(lanes) + 1.0
    for each in below:
        height = first + 0.8 * each.row
        axes.text(each.at, height, each.text, color=TRUTH, ha="center", **look)
        axes.plot(
            [each.start, each.end], [first - 0.52] * 2, color=TRUTH, lw=0.8, solid_capstyle="butt"
        )
    rows = max((each.row + 1 for each in below), default=0)
    axes.set(ylim=(first + 0.8 * rows - 0.4, -0.6), yticks=[], ylabel="truth")
    _bare(axes)


def _proposals(axes: Axes, segments: Float64, scores: Float64, total: int) -> None:
    """Draw the best proposals from the top, from the lightest shade for the lowest score shown."""
    spread = float(np.ptp(scores)) if len(scores) else 0.0
    shares = (scores - scores.min()) / spread if spread else np.ones(len(scores))
    rows = zip(segments, shares, score_texts(scores), strict=True)
    for rank, ((start, end), share, text) in enumerate(rows):
        shade = SHADES(share)
        axes.barh(rank, end - start, left=start, height=0.74, color=shade, lw=0, zorder=2)
        axes.annotate(
            text, xy=(1.008, rank), xycoords=("axes fraction", "data"),
            va="center_baseline", fontsize=7, color=QUIET,
        )  # fmt: skip
    shown = max(len(scores), 2)
    axes.set(ylim=(shown - 0.35, -0.65), yticks=range(0, len(scores), 2))
    axes.set_yticklabels([str(rank + 1) for rank in range(0, len(scores), 2)], fontsize=7)
    axes.set_ylabel("proposals" if len(scores) == total else f"best {len(scores)} of {total:,}")
    if not len(scores):
        _note(axes, "no proposals")
    _bare(axes)


def score_texts(scores: Float64) -> list[str]:
    """Return scores with two to four decimals: enough to divide their range into ten steps."""
    if not len(scores) or 0 < np.abs(scores).max() < 0.01:
        return [f"{score:.1e}" for score in scores]
    spread = float(scores.max() - scores.min())
    decimals = next((places for places in (2, 3) if spread * 10**places >= 9.5), 4)
    return [f"{score:.{decimals if spread else 2}f}" for score in scores]


def _scale(axes: Axes, scores: Float64, height: float) -> None:
    """Draw the scale of the shades below the time axis; `height` is the axes' in inches."""
    texts = score_texts(scores)
    scale = axes.inset_axes((0.86, -0.47 / height, 0.08, 0.09 / height))
    scale.imshow([SHADES(np.linspace(0, 1, 64))], aspect="auto", extent=(0, 1, 0, 1))
    scale.axis("off")
    look: dict[str, Any] = {"va": "center_baseline", "fontsize": 7, "color": QUIET}
    scale.text(-0.06, 0.5, f"score {texts[-1]}", ha="right", **look)
    scale.text(1.06, 0.5, texts[0], ha="left", **look)


def _note(axes: Axes, text: str) -> None:
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=QUIET)
    axes.set(yticks=[])
    _bare(axes)


def _bare(axes: Axes) -> None:
    axes.grid(visible=False, axis="y")
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(left=False, bottom=False)


def _time_axis(axes: Axes, duration: float) -> None:
    """Mark round times: about ten marks over the video."""
    step = next((step for step in _STEPS if duration / step <= 12), 7200)
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


def shortened(text: str) -> str:
    """Return a name that fits into a figure: matplotlib makes room for it until none is left."""
    if _letters(text) <= _LONGEST:
        return text
    room = takewhile(lambda end: _letters(text[:end]) < _LONGEST, range(1, len(text)))
    return f"{text[: max(room)]}…"


def lanes_of(instances: Sequence[Instance]) -> list[int]:
    """Return for each instance the first lane in which it overlaps no earlier instance."""
    ends: list[float] = []
    lanes = [0] * len(instances)
    for index, instance in sorted(enumerate(instances), key=lambda item: item[1].start):
        lanes[index] = _take_lane(ends, instance.start, instance.end)
    return lanes


def _take_lane(ends: list[float], start: float, end: float) -> int:
    """Return the first lane that is free at `start`, by the `ends` of all; take it up to `end`."""
    lane = next((lane for lane, last in enumerate(ends) if last <= start), len(ends))
    ends[lane : lane + 1] = [end]
    return lane


def place_names(
    instances: Sequence[Instance], lanes: Sequence[int], duration: float
) -> tuple[list[Inside], list[Below]]:
    """Return where the names of instances stand.

    Names go inside or behind their bars where there is room. The others go below, where neighbours
    of one name share it if their own would not fit side by side.
    """
    inside, crowded = [], []
    ordered = sorted(zip(instances, lanes, strict=True), key=lambda pair: pair[0].start)
    for place, (instance, lane) in enumerate(ordered):
        start, end, label = instance.start, instance.end, instance.label
        if not label:
            continue
        width = _width(label, duration)
        later = [other.start for other, other_lane in ordered[place + 1 :] if other_lane == lane]
        if width <= end - start:
            inside.append(Inside(lane, (start + end) / 2, label, behind=False))
        elif end + width <= min(later, default=duration):
            inside.append(Inside(lane, end + 0.004 * duration, label, behind=True))
        else:
            crowded.append(instance)
    return inside, _rows(_groups(crowded, duration), duration)


def _groups(instances: Sequence[Instance], duration: float) -> list[list[Instance]]:
    """Return runs of instances of one name that lie closer than their names are wide."""
    groups: list[list[Instance]] = []
    for instance in instances:
        if groups and groups[-1][-1].label == instance.label:
            last = groups[-1][-1]
            distance = (instance.start + instance.end - last.start - last.end) / 2
            if distance < _width(instance.label, duration):
                groups[-1].append(instance)
                continue
        groups.append([instance])
    return groups


def _rows(groups: Sequence[Sequence[Instance]], duration: float) -> list[Below]:
    """Put each group's name into the first row where it is free."""
    ends: list[float] = []  # of the last name of each row
    names = []
    for group in groups:
        start, end = group[0].start, max(each.end for each in group)
        text = group[0].label + (f" ×{len(group)}" if len(group) > 1 else "")
        half = _width(text, duration) / 2
        at = min(max((start + end) / 2, half), max(duration - half, half))
        row = _take_lane(ends, at - half, at + half)
        names.append(Below(row, at, text, start, end))
    return names


def _width(text: str, duration: float) -> float:
    """Return how much of the axis a name takes in seconds; a Chinese character is two letters."""
    return _CHARACTER * (_letters(text) + 1) * duration


def _letters(text: str) -> int:
    return sum(1 + (unicodedata.east_asian_width(each) in "WF") for each in text)
