"""Figures 9 and 10 of paper 000 for our runs: speed ratios, and run times with fitted models."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from actionspan.arrays import Float64
from actionspan.errors import InputError
from actionspan.scaling.fit_timing import measured_parts
from actionspan.scaling.times import SINGLE, Ratios, Run
from actionspan.scaling.timing_model import PARAMETERS, Error, Estimate, model_columns
from actionspan.storage.figures import (
    COLOURS,
    INK,
    QUIET,
    house_style,
    name_line,
    save_figure,
    spread_labels,
)
from actionspan.storage.writing import read_json

# The first six have a colour of their own, the others share their nearest kin's.
_COLOUR_ORDER = "ring ps mpi ps_sharded gloo ps_async auto ps_worker nccl aavg periodic".split()


def exchange_colour(exchange: str) -> str:
    """Return the colour an exchange has in every figure."""
    return COLOURS[_COLOUR_ORDER.index(exchange) % len(COLOURS)]


def draw_speedup(path: Path, panels: Mapping[str, Ratios]) -> None:
    """Draw the median speed ratio over ranks, with whiskers from the least to the greatest.

    `path` is an .svg or .png file; `panels` has the ratios by the title of their panel.
    """
    runs = (at.values() for ratios in panels.values() for at in ratios.values())
    highest = max(max(values) for lists in runs for values in lists)
    with house_style():
        layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08)
        figure = Figure(figsize=(1.4 + 4.6 * len(panels), 4.2), layout=layout)
        every = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, (title, ratios) in zip(every, panels.items(), strict=True):
            axes.set(title=f"Speed ratio, {title}", xlabel="ranks")
            _speed_panel(axes, ratios, highest)
        every[0].set_ylabel("time on one rank / time")
        save_figure(figure, path)


def _speed_panel(axes: Axes, ratios: Ratios, highest: float) -> None:
    """Draw the exchanges of one panel; `highest` is the greatest ratio of all panels."""
    numbers = sorted({ranks for at in ratios.values() for ranks in at})
    last, top = numbers[-1], 1.07 * max(highest, min(numbers[-1], 1.2 * highest))
    axes.set(xlim=(1 - 0.03 * last, 1.05 * last), ylim=(0, top))
    axes.set_xticks(numbers_apart(numbers, last / 16))
    # the line on which n ranks are n times as fast
    axes.plot([1, last], [1, last], color=QUIET, linewidth=1.1, dashes=(5, 3), zorder=1)
    reach = min(last, 0.96 * top)
    place: dict[str, Any] = {"textcoords": "offset points", "ha": "right", "va": "center"}
    axes.annotate("ideal", xy=(reach, reach), xytext=(-9, 0), color=QUIET, **place)
    # the exchanges, a little to the side, so that no whiskers hide another's
    ends: dict[str, tuple[float, float]] = {}
    names = [exchange for exchange in ratios if exchange != SINGLE]
    spread = min(0.24, 0.03 * last) / len(names)
    for index, exchange in enumerate(names):
        at, colour = ratios[exchange], exchange_colour(exchange)
        aside = spread * (index - (len(names) - 1) / 2)
        begin = [1.0] if 1 not in at else []
        places = [ranks + aside for ranks in at]
        middle = [median(values) for values in at.values()]
        xs, ys = [*begin, *places], [*begin, *middle]
        (line,) = axes.plot(xs, ys, color=colour, linewidth=1.7, zorder=3)
        if _COLOUR_ORDER.index(exchange) >= len(COLOURS):
            line.set_dashes((3.2, 1.5))
        _draw_points(axes, places, at, colour)
        ends[exchange] = places[-1], middle[-1]
    _draw_points(axes, [1], ratios[SINGLE], INK)
    # their names, to the right of the lines' ends
    heights = spread_labels({name: height for name, (_, height) in ends.items()}, 0.06 * top)
    for name, height in heights.items():
        name_line(axes, name, ends[name], (1.02, height / top), exchange_colour(name), gap=5)


def _draw_points(
    axes: Axes, places: Sequence[float], at: Mapping[int, Sequence[float]], colour: str
) -> None:
    """Draw the median on each number of ranks, with whiskers from the least to the greatest."""
    middle = [median(ratios) for ratios in at.values()]
    below = [centre - min(ratios) for centre, ratios in zip(middle, at.values(), strict=True)]
    above = [max(ratios) - centre for centre, ratios in zip(middle, at.values(), strict=True)]
    look: dict[str, Any] = {"fmt": "o", "markersize": 3.8, "elinewidth": 1.1, "capsize": 2.2}
    axes.errorbar(places, middle, yerr=[below, above], color=colour, zorder=4, **look)


def numbers_apart(numbers: Sequence[int], gap: float) -> list[int]:
    """Return rising numbers that are at least `gap` apart, always with the last."""
    kept = [numbers[-1]]
    for number in reversed(numbers[:-1]):
        if kept[-1] - number >= gap:
            kept.append(number)
    return kept[::-1]


Model = Mapping[str, Mapping[str, Any]]
_PARTS = {
    "t1": ("#dfe3e8", "t1 compute"),
    "t2": ("#b4bcc7", "t2 communication"),
    "t3": ("#eee6d6", "t3 start and finish"),
}
_NEEDED = "T C P rank fitted paper_fit curve identifiable intervals ranks".split()
_COLUMNS = 3  # of panels


def read_model(path: Path, runs: Sequence[Run]) -> Model:
    """Read timing_model.json.

    Raises:
        InputError: The file is not a model, or was fitted to other runs.
    """
    model = read_json(path)
    present = {run.exchange for run in runs} - {SINGLE}
    if not isinstance(model, dict) or set(model) != present:
        names = ", ".join(sorted(present)) or "none"
        raise InputError(f"{path}: not fitted to these times, which have {names}; fit it again")
    for exchange, entry in model.items():
        ranks = sorted({run.ranks for run in runs if run.exchange == exchange})
        missing = [key for key in _NEEDED if not isinstance(entry, dict) or key not in entry]
        if missing:
            raise InputError(f"{path}: {exchange} has no {missing[0]!r}; fit it again")
        if entry["ranks"] != ranks:
            line = f"was fitted to runs on {entry['ranks']} ranks, not {ranks}; fit it again"
            raise InputError(f"{path}: {exchange} {line}")
        try:  # all that the panels take from it
            _draw_model(Figure().subplots(), exchange, entry, ranks[-1])
            _title(exchange, entry)
            _values(entry)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            raise InputError(f"{path}: {exchange} is not as it was fitted; fit it again") from None
    return model


def draw_fit(path: Path, runs: Sequence[Run], model: Model) -> None:
    """Draw one panel for each exchange into an .svg or .png file."""
    rows = math.ceil(len(model) / _COLUMNS)
    columns = min(_COLUMNS, len(model))
    lines = max(len(_values(entry).splitlines()) for entry in model.values())
    size = max(4.9, 0.6 + 3.3 * columns), 0.6 + (2.75 + 0.17 * lines) * rows
    with house_style():
        layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08, wspace=0.04, hspace=0.06)
        figure = Figure(figsize=size, layout=layout)
        grid = figure.subplots(rows, columns, sharey=True, squeeze=False)
        for axes in grid.flat[len(model) :]:
            axes.set_visible(False)
        for place, (exchange, entry) in enumerate(model.items()):
            axes = grid.flat[place]
            _fit_panel(axes, exchange, entry, runs, lines)
            if place % columns == 0:
                axes.set_ylabel("seconds of a run")
            if place + columns >= len(model):
                axes.set_xlabel("ranks")
        # explain the content, above all panels
        run = Line2D([], [], marker="o", color=QUIET, markeredgecolor=INK, linewidth=1.9)
        paper = Line2D([], [], color=INK, linewidth=1.1, dashes=(4, 2.4))
        single = Line2D([], [], marker="o", color="white", markeredgecolor=INK, linewidth=0)
        parts = [_PARTS[part] for part, means in measured_parts(runs).items() if means]
        figure.legend(
            [run, paper, single, *(Patch(color=colour) for colour, _ in parts)],
            ["runs, model with confidence band", "papers' fit", "single rank (none)"]
            + [name for _, name in parts],
            loc="outside upper left",
            ncols=2 if figure.get_figwidth() < 6 else 3,
            frameon=False,
        )
        save_figure(figure, path)


def _fit_panel(
    axes: Axes, exchange: str, entry: Mapping[str, Any], runs: Sequence[Run], lines: int
) -> None:
    """Draw one exchange, leaving room for `lines` lines of text below the title."""
    own = [run for run in runs if run.exchange == exchange]
    single = [run for run in runs if run.exchange == SINGLE]
    last = max(run.ranks for run in runs)
    # the mean t1, t2 and t3 of each number of ranks, stacked
    heights: dict[str, float] = {}
    for name, means in measured_parts([*own, *single]).items():
        for ranks, seconds in (means or {}).items():
            look: dict[str, Any] = {"bottom": heights.get(ranks, 0.0), "color": _PARTS[name][0]}
            axes.bar(int(ranks), seconds, 0.05 * last + 0.25, zorder=1, **look)
            heights[ranks] = look["bottom"] + seconds
    # the model and the runs
    _draw_model(axes, exchange, entry, last)
    for chosen, face in ((single, "white"), (own, exchange_colour(exchange))):
        numbers, times = [run.ranks for run in chosen], [run.seconds for run in chosen]
        axes.plot(numbers, times, "o", ms=4.2, mfc=face, mec=INK, mew=0.7, zorder=5)
    # the axes and the texts
    axes.set_xticks(numbers_apart(sorted({1} | {run.ranks for run in runs}), last / 10))
    axes.set_xlim(1 - 0.05 * last - 0.25, last + 0.05 * last + 0.25)
    axes.set_ylim(0, 1.12 * max(run.seconds for run in runs))
    axes.tick_params(labelleft=True)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axes.set_title(_title(exchange, entry), pad=11 + 12.5 * lines)
    place: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
    axes.annotate(_values(entry), xy=(0, 1), xytext=(0, 6), va="bottom", linespacing=1.4, **place)


def _draw_model(axes: Axes, exchange: str, entry: Mapping[str, Any], last: int) -> None:
    """Draw the fitted curve with its band, and the papers' fit, up to the last number of ranks."""
    ranks = np.geomspace(1, last, 200)
    if entry["curve"] is not None:
        middle, low, high = curve_with_band(entry["curve"], ranks)
        colour = exchange_colour(exchange)
        axes.fill_between(ranks, low, high, color=colour, alpha=0.22, linewidth=0, zorder=2)
        axes.plot(ranks, middle, color=colour, linewidth=1.9, zorder=3)
    paper = np.array([entry["paper_fit"][name] for name in PARAMETERS])
    dashed = model_columns(exchange, ranks) @ paper
    axes.plot(ranks, dashed, color=INK, linewidth=1.1, dashes=(4, 2.4), zorder=4)


def curve_with_band(record: Mapping[str, Any], ranks: Float64) -> tuple[Float64, Float64, Float64]:
    """Return a fitted curve and its confidence band at numbers of ranks (m,).

    `record` is `curve` of an exchange in timing_model.json; ranks are at least 1 and may be
    fractions. The limits are NaN where they are not known.

    Returns:
        (m,) seconds, and their lower and upper limits.
    """
    errors = [Error(np.array(one["covariance"]), one["degrees"]) for one in record["errors"]]
    curve = Estimate(np.array(record["coefficients"]), tuple(errors))
    terms = np.column_stack([1 / ranks, ranks, np.ones_like(ranks)])
    unknown = (math.nan, math.nan)
    limits = np.array([curve.interval(row) or unknown for row in terms.tolist()])
    return terms @ curve.values, limits[:, 0], limits[:, 1]


def _title(exchange: str, entry: Mapping[str, Any]) -> str:
    fitted = entry["fitted"]
    return f"{exchange}: rank {entry['rank']} of {len(fitted)} ({', '.join(fitted)})"


def _values(entry: Mapping[str, Any]) -> str:
    """Return the fitted values, a line each, with half their interval where it is known."""
    names = [name for name in PARAMETERS if entry[name] is not None]
    if "C" not in names:
        names += [name for name in entry["identifiable"] if name not in names]
    lines = []
    for name in names:
        value = entry[name] if name in entry else entry["identifiable"][name]
        interval = entry["intervals"].get(name)
        half = "" if interval is None else f" ± {_short((interval[1] - interval[0]) / 2)}"
        lines.append(f"{name.replace('-', '−')} = {_short(value)}{half} s")
    return "\n".join(lines)


def _short(value: float) -> str:
    """Return a number with about three digits, without an exponent where it can be."""
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:,.{min(digits, 6)}f}".replace("-", "−")
