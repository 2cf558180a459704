"""Recall curves of several methods: the table, and the figure drawn from that table."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from actionspan.errors import InputError, counted
from actionspan.evaluation.records import Record
from actionspan.files.figures import COLOURS, QUIET, house_style, save_figure
from actionspan.files.storage import read_tsv

CURVE_COLUMNS = ("method", "kind", "x", "y", "low", "high", "videos")
AR_AGAINST_AN = "AR vs AN"
RECALL_AGAINST_TIOU = "recall vs tIoU at AN=100"
AREA = "AUC"
PANELS = (
    (AR_AGAINST_AN, "Average recall", "average number of proposals (AN)"),
    (RECALL_AGAINST_TIOU, "Recall at AN = 100", "tIoU threshold"),
)
# told apart by lightness and by dashes
_BASELINES: dict[str, tuple[str, Any]] = {
    "random": ("#a3a8af", (0, (1, 1.6))),
    "sliding": ("#7c828a", (0, (4, 1.8))),
    "difference": ("#555b63", (0, (6, 1.6, 1, 1.6))),
    "tag": ("#26292e", (0, (6, 1.6, 1, 1.6, 1, 1.6))),
}
_MARKERS = ("", "o", "s", "^")  # of a second model with a colour, a third one, …
_BANDS = 2  # intervals that are shaded: more would hide each other


@dataclass(frozen=True, kw_only=True)
class Curve:
    """The points of a curve; `low` and `high` are the interval of each."""

    x: list[float] = field(default_factory=list)
    y: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Curves:
    """By kind and method: both kinds of curve, and AUC, whose x is 100."""

    videos: int
    by_kind: dict[str, dict[str, Curve]]

    def ranked(self) -> list[str]:
        """Return the methods, the largest area first."""
        areas = self.by_kind[AREA]
        return sorted(areas, key=lambda method: -areas[method].y[0])


def curve_rows(records: Sequence[Record]) -> list[tuple[str | float, ...]]:
    """Return the rows of recall_curves.tsv, in `CURVE_COLUMNS`; y is a fraction."""
    rows: list[tuple[str | float, ...]] = []
    for record in records:
        method, videos = str(record["method"]), int(record["videos"])
        low, high = record["AR_interval"]
        for point in zip(record["AN"], record["AR"], low, high, strict=True):
            rows.append((method, AR_AGAINST_AN, *map(float, point), videos))
        for tiou, recalls in record["recall"].items():
            ends = record["recall@100_interval"][tiou]
            point = (tiou, recalls[-1], *ends)
            rows.append((method, RECALL_AGAINST_TIOU, *map(float, point), videos))
        area = [record["AUC"], *record["AUC_interval"]]
        rows.append((method, AREA, 100.0, *(percent / 100 for percent in area), videos))
    return rows


def read_curves(path: Path) -> Curves:
    """Read recall_curves.tsv.

    Raises:
        InputError: The file is missing, a row does not belong to it or a kind has no row.
    """
    curves: dict[str, dict[str, Curve]] = {AR_AGAINST_AN: {}, RECALL_AGAINST_TIOU: {}, AREA: {}}
    videos = 0
    for row, values in enumerate(read_tsv(path), start=2):
        try:
            curve = curves[values["kind"]].setdefault(values["method"], Curve())
            for name in ("x", "y", "low", "high"):
                getattr(curve, name).append(float(values[name]))
            videos = int(values["videos"])
        except (KeyError, TypeError, ValueError):
            raise InputError(
                f"{path}: row {row}: not a row of {', '.join(CURVE_COLUMNS)}"
            ) from None
    if not all(curves.values()):
        raise InputError(f"{path}: no rows for both kinds of curve and AUC; it needs them")
    return Curves(videos=videos, by_kind=curves)


def draw_curves(path: Path, curves: Curves) -> None:
    """Draw both kinds of curves next to each other, and a legend with the areas.

    The intervals of the best models are shaded: those of all would hide each other.
    """
    ranked = curves.ranked()
    looks = _looks(list(curves.by_kind[AR_AGAINST_AN]))
    banded = [method for method in ranked if method not in _BASELINES][:_BANDS]
    note = f"AUC (interval), {counted(curves.videos, 'video')}"
    note += f"\nshaded: {' and '.join(banded)}" if banded else ""
    with house_style():
        layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08, wspace=0.06)
        figure = Figure(figsize=(9.6, 3.9), layout=layout)
        panels = figure.subplots(1, 2)
        for axes, (kind, title, label) in zip(panels, PANELS, strict=True):
            _panel(axes, curves.by_kind[kind], looks, ranked, banded)
            axes.set(title=title, xlabel=label, ylabel="instances found")
            axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%")
        handles = [panels[0].lines[place] for place in range(len(ranked))]
        legend = figure.legend(
            handles, [_named(method, curves.by_kind[AREA][method]) for method in ranked],
            loc="outside right upper", frameon=False, handlelength=2.6, fontsize=8,
            title=note, title_fontsize=8, alignment="left",
        )  # fmt: skip
        legend.get_title().set_color(QUIET)
        save_figure(figure, path)


def _named(method: str, area: Curve) -> str:
    low, high = 100 * area.low[0], 100 * area.high[0]
    return f"{method}  {100 * area.y[0]:.1f}  ({low:.1f}–{high:.1f})"


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


def _panel(
    axes: Axes,
    curves: dict[str, Curve],
    looks: dict[str, dict[str, Any]],
    ranked: Sequence[str],
    banded: Sequence[str],
) -> None:
    """Draw the lines of one panel, the best method first, and some intervals."""
    for method in ranked:
        curve = curves[method]
        axes.plot(curve.x, curve.y, clip_on=False, **looks[method])
        if method in banded:
            colour = looks[method]["color"]
            axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.13, lw=0)
    axes.set_xlim(min(curve.x[0] for curve in curves.values()), curves[ranked[0]].x[-1])
    tops = [curve.high if name in banded else curve.y for name, curve in curves.items()]
    axes.set_ylim(0, min(1.0, max(map(max, tops)) * 1.04 + 0.01))
