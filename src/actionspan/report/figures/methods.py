"""The figures of methods: recall curves, misses and reliability."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from actionspan.errors import counted
from actionspan.evaluation.misses import CHARACTERISTICS, NAMES, Bin
from actionspan.evaluation.records import AREA, PANELS, Curve, Record, curves_of
from actionspan.evaluation.reliability import ScoreBin, ScoredProposals
from actionspan.storage.figures import COLOURS, INK, QUIET, house_style, save_figure, spread_labels

# distinguished by lightness and by dashes
_BASELINES: dict[str, tuple[str, Any]] = {
    "random": ("#a3a8af", (0, (1, 1.6))),
    "sliding": ("#7c828a", (0, (4, 1.8))),
    "difference": ("#555b63", (0, (6, 1.6, 1, 1.6))),
    "cuts": ("#3d4248", (0, (2, 1, 6, 1))),
    "tag": ("#26292e", (0, (6, 1.6, 1, 1.6, 1, 1.6))),
}
_MARKERS = ("", "o", "s", "^")  # of a second model with a colour, a third one, …
_BANDS = 2  # intervals that are shaded: more would hide each other


@contextmanager
def _figure(path: Path, size: tuple[float, float], title: str = "", **gaps: Any) -> Iterator[Any]:
    """Yield a figure of the house style, and save it with a title at the left."""
    with house_style():
        figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(w_pad=0.08, **gaps))
        yield figure
        if title:
            figure.suptitle(title, x=0.01, ha="left", fontsize=9, color=QUIET)
        save_figure(figure, path)


def draw_curves(path: Path, records: Sequence[Record]) -> None:
    """Draw both kinds of curves next to each other, and a legend with the areas.

    The intervals of the best models are shaded: the intervals of all would hide each other.
    """
    curves = {record["method"]: curves_of(record) for record in records}
    looks = _looks(list(curves))
    ranked = sorted(curves, key=lambda method: -curves[method][AREA].y[0])
    banded = [method for method in ranked if method not in _BASELINES][:_BANDS]
    note = f"AUC (interval), {counted(records[-1]['videos'], 'video')}"
    note += f"\nshaded: {' and '.join(banded)}" if banded else ""
    with _figure(path, (9.6, 3.9), h_pad=0.08, wspace=0.06) as figure:
        panels = figure.subplots(1, 2)
        for axes, (kind, title, label) in zip(panels, PANELS, strict=True):
            _recall_panel(axes, {name: curves[name][kind] for name in ranked}, looks, banded)
            axes.set(title=title, xlabel=label, ylabel="instances found")
            axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%")
        names = []
        for method in ranked:
            value, low, high = (100 * ends[0] for ends in curves[method][AREA][1:])
            names.append(f"{method}  {value:.1f}  ({low:.1f}–{high:.1f})")
        legend = figure.legend(
            panels[0].lines[: len(ranked)], names,
            loc="outside right upper", frameon=False, handlelength=2.6, fontsize=8,
            title=note, title_fontsize=8, alignment="left",
        )  # fmt: skip
        legend.get_title().set_color(QUIET)


def _looks(methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return how each method's line looks: models in colours, baselines in greys with dashes."""
    looks: dict[str, dict[str, Any]] = {}
    for method in methods:
        if method in _BASELINES:
            colour, dashes = _BASELINES[method]
            looks[method] = {"color": colour, "linestyle": dashes, "linewidth": 1.4, "zorder": 2}
        else:
            place = sum(other not in _BASELINES for other in looks)
            marker = _MARKERS[place // len(COLOURS) % len(_MARKERS)]
            looks[method] = {
                "color": COLOURS[place % len(COLOURS)],
                "linewidth": 1.9,
                "zorder": 3,
                **({"marker": marker, "markevery": 0.1, "markersize": 4} if marker else {}),
            }
    return looks


def _recall_panel(
    axes: Axes, curves: dict[str, Curve], looks: dict[str, dict[str, Any]], banded: Sequence[str]
) -> None:
    """Draw the lines of one panel, the best method first, and some intervals."""
    for method, curve in curves.items():
        axes.plot(curve.x, curve.y, clip_on=False, **looks[method])
        if method in banded:
            colour = looks[method]["color"]
            axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.13, lw=0)
    best = next(iter(curves.values()))
    axes.set_xlim(min(curve.x[0] for curve in curves.values()), best.x[-1])
    tops = [curve.high if name in banded else curve.y for name, curve in curves.items()]
    axes.set_ylim(0, min(1.0, max(map(max, tops)) * 1.04 + 0.01))


_SHADES = ("#d55e00", "#eb9f66", "#f7d8c1")  # missed at 0.5, at 0.7 only, at 0.9 only


def draw_misses(path: Path, bins: Sequence[Bin], method: str) -> None:
    """Draw a panel for each characteristic: the share of each bin missed at tIoU 0.5, 0.7, 0.9.

    Of the `bins` that `break_down` returned those without an instance are left out.
    """
    everything = bins[0]
    title = (
        f"What {method} misses at tIoU {', '.join(NAMES)}, of {everything.instances:,} "
        "instances (below each bar: of how many; dotted: of all)"
    )
    with _figure(path, (9.0, 5.6), title, h_pad=0.08, wspace=0.04, hspace=0.04) as figure:
        panels = figure.subplots(2, 2, sharey=True)
        for axes, kind in zip(panels.flat, CHARACTERISTICS, strict=True):
            rows = [row for row in bins if row.characteristic == kind.name and row.instances]
            _misses_panel(axes, rows, everything)
            axes.set_title(kind.title.replace("share", "percentage"))
        for axes in panels[:, 1]:
            _name_the_shades(axes, everything)
        for axes in panels[:, 0]:
            axes.set_ylabel("instances missed")


def _misses_panel(axes: Axes, rows: Sequence[Bin], everything: Bin) -> None:
    """Draw nested bars, the loosest threshold in front, and the rates of all instances."""
    missed = np.array([row.missed for row in rows]) / [[row.instances] for row in rows]  # (B, 3)
    for column in (2, 1, 0):
        axes.bar(range(len(rows)), missed[:, column], width=0.74, color=_SHADES[column], lw=0)
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
    missed = zip(NAMES, everything.missed, strict=True)
    rates = {name: number / everything.instances for name, number in missed}
    heights = spread_labels(rates, 0.085)
    for name, shade in zip(NAMES, _SHADES, strict=True):
        text, place = f"tIoU {name}: {100 * rates[name]:.0f}%", (1.07, heights[name])
        axes.annotate(text, xy=place, xycoords="axes fraction", va="center_baseline", fontsize=8)
        look: dict[str, Any] = {"ms": 6, "color": shade, "clip_on": False}
        axes.plot(1.04, heights[name], "s", transform=axes.transAxes, **look)


_QUALITY = (("tIoU ≥ 0.5", COLOURS[0]), ("mean tIoU", COLOURS[2]), ("tIoU ≥ 0.7", COLOURS[1]))


def draw_reliability(
    path: Path, scored: ScoredProposals, bins: Sequence[ScoreBin], method: str
) -> None:
    """Draw quality over score with a histogram of the scores, and quality by `score_bins`."""
    count = f"{len(scored.scores):,} proposals in {len(bins)} bins of equally many"
    with _figure(path, (9.0, 4.4), f"{method}: {count}", h_pad=0.06, wspace=0.05) as figure:
        panels = figure.subplot_mosaic(
            [["score", "order"], ["counts", "order"]], height_ratios=[3.2, 1]
        )
        if bins:
            panels["counts"].sharex(panels["score"])
            _over_scores(panels["score"], panels["counts"], scored, bins)
            _over_order(panels["order"], bins)
        else:
            for axes in panels.values():
                axes.text(0.5, 0.5, "no proposals", transform=axes.transAxes, ha="center")
        panels["score"].set_title("Quality of the proposals of a score")
        panels["order"].set_title("Quality from the worst score to the best")


def _draw_quality(
    axes: Axes, places: Sequence[float], bins: Sequence[ScoreBin]
) -> dict[str, float]:
    """Draw the curves that both panels show; return where each ends."""
    heights = zip(*((row.share[0], row.mean_tiou, row.share[1]) for row in bins), strict=True)
    ends = {}
    for (name, colour), ys in zip(_QUALITY, heights, strict=True):
        axes.plot(places, ys, "o-", color=colour, lw=1.5, ms=3.5, clip_on=False, zorder=3)
        ends[name] = ys[-1]
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%")
    return ends


def _over_scores(
    axes: Axes, below: Axes, scored: ScoredProposals, bins: Sequence[ScoreBin]
) -> None:
    """Draw quality over score, and a histogram of the scores below."""
    _draw_quality(axes, [row.mean_score for row in bins], bins)
    axes.set_ylim(0, 1)
    axes.tick_params(labelbottom=False)
    if scored.is_share:
        right = min(1.0, np.ceil(10 * float(scored.scores.max()) + 1e-9) / 10)
        axes.set_xlim(0, right)
        axes.plot([0, right], [0, right], color=INK, lw=0.8, ls=(0, (2, 2)), zorder=2)
        axes.text(
            0.98 * right, 0.98 * right, "as the score states", ha="right", va="bottom",
            rotation=45, rotation_mode="anchor", transform_rotates_text=True,
            fontsize=7.5, color=QUIET,
        )  # fmt: skip
    counts, edges = np.histogram(scored.scores, bins=40, range=axes.get_xlim())
    below.bar(edges[:-1], counts, width=np.diff(edges), align="edge", color=QUIET, lw=0, alpha=0.6)
    below.set(xlabel="score", ylabel="proposals")
    below.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    below.grid(visible=False, axis="x")


def _over_order(axes: Axes, bins: Sequence[ScoreBin]) -> None:
    places = range(1, len(bins) + 1)
    ends = _draw_quality(axes, places, bins)
    firsts = [row.first[0] for row in bins]
    axes.plot(places, firsts, color=QUIET, lw=1.3, ls=(0, (4, 1.6)), clip_on=False, zorder=3)
    axes.set(ylim=(0, 1), xlabel="bin of scores", xticks=places)
    axes.set_xlim(0.7, max(len(bins), 2))
    ends["first at 0.5"] = firsts[-1]
    colours = {**dict(_QUALITY), "first at 0.5": INK}
    for name, height in spread_labels(ends, 0.05).items():
        axes.annotate(
            name, (1.04, height), xycoords="axes fraction",
            va="center_baseline", color=colours[name], fontsize=8,
        )  # fmt: skip
