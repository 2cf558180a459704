"""Figure 9 of paper 000 for our runs: how much faster training is on more ranks."""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from statistics import median
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from actionspan.errors import InputError
from actionspan.files.figures import (
    COLOURS,
    INK,
    QUIET,
    house_style,
    name_line,
    save_figure,
    spread_labels,
)
from actionspan.scaling.table import EXCHANGES, SINGLE, Run

Ratios = Mapping[str, Mapping[int, Sequence[float]]]
"""By exchange (`none` among them) and number of ranks, the speed ratio of each run."""

# The first six have a colour of their own, the others share that of their nearest kin.
_COLOUR_ORDER = (
    *("ring", "ps", "mpi", "ps_sharded", "gloo", "ps_async"),
    *("auto", "ps_worker", "nccl", "aavg", "periodic"),
)
_KIN_DASHES = (3.2, 1.5)


def speed_ratios(
    path: Path, runs: Sequence[Run], part: Callable[[Run], float] = attrgetter("seconds")
) -> Ratios:
    """Return t0/t of each run; t0 is the median time of the single-rank runs.

    Args:
        path: The table, for messages.
        runs: All its runs.
        part: Seconds of a run that are compared.

    Raises:
        InputError: There is no single-rank run, or no other.
    """
    alone = [part(run) for run in runs if run.exchange == SINGLE]
    if not alone:
        raise InputError(
            f"{path}: no row of exchange {SINGLE!r} on 1 rank; the others are compared with it"
        )
    reference = median(alone)
    ratios: dict[str, dict[int, list[float]]] = {}
    for exchange in (SINGLE, *EXCHANGES):
        for run in sorted(runs, key=lambda run: run.ranks):
            if run.exchange == exchange:
                at = ratios.setdefault(exchange, {}).setdefault(run.ranks, [])
                at.append(reference / part(run))
    if len(ratios) == 1:
        raise InputError(f"{path}: only single-rank runs; runs on several ranks are needed")
    return ratios


def exchange_colour(exchange: str) -> str:
    """Return the colour an exchange has in every figure."""
    return COLOURS[_COLOUR_ORDER.index(exchange) % len(COLOURS)]


def speed_panels(path: Path, runs: Sequence[Run]) -> dict[str, Ratios]:
    """Return the ratios of complete runs and, where these were measured, of their steps alone.

    The steps are what grows with the length of training: computing and communication. Arguments
    and errors are those of `speed_ratios`.
    """
    panels = {"whole run": speed_ratios(path, runs)}
    if all(run.t1 and run.t2 is not None for run in runs):
        panels["steps alone (t1 + t2)"] = speed_ratios(
            path, runs, lambda run: (run.t1 or 0.0) + (run.t2 or 0.0)
        )
    return panels


def draw_speedup(path: Path, panels: Mapping[str, Ratios]) -> None:
    """Draw the median speed ratio over ranks, with whiskers from the least to the greatest.

    Args:
        path: An .svg or .png file.
        panels: Ratios by the title of their panel.
    """
    runs = (at.values() for ratios in panels.values() for at in ratios.values())
    highest = max(max(values) for lists in runs for values in lists)
    with house_style():
        layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08)
        figure = Figure(figsize=(1.4 + 4.6 * len(panels), 4.2), layout=layout)
        every = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, (title, ratios) in zip(every, panels.items(), strict=True):
            axes.set(title=f"Speed ratio, {title}", xlabel="ranks")
            _draw_panel(axes, ratios, highest)
        every[0].set_ylabel("time on one rank / time")
        save_figure(figure, path)


def _draw_panel(axes: Axes, ratios: Ratios, highest: float) -> None:
    """Draw the exchanges of one panel; `highest` is the greatest ratio of all panels."""
    numbers = sorted({ranks for at in ratios.values() for ranks in at})
    last = numbers[-1]
    axes.set(
        xlim=(1 - 0.03 * last, 1.05 * last),
        ylim=(0, 1.07 * max(highest, min(last, 1.2 * highest))),
    )
    axes.set_xticks(numbers_apart(numbers, last / 16))
    _draw_ideal(axes, last)
    ends: dict[str, tuple[float, float]] = {}
    names = [exchange for exchange in ratios if exchange != SINGLE]
    # each a little to the side, so that one exchange's whiskers do not hide another's
    spread = min(0.24, 0.03 * last) / len(names)
    for place, exchange in enumerate(names):
        aside = spread * (place - (len(names) - 1) / 2)
        ends[exchange] = _draw_exchange(axes, exchange, ratios[exchange], aside)
    _draw_points(axes, [1], list(ratios[SINGLE].values()), color=INK)
    _name_lines(axes, ends)


def _draw_ideal(axes: Axes, last: int) -> None:
    """Draw the line on which n ranks are n times as fast."""
    top = axes.get_ylim()[1]
    axes.plot([1, last], [1, last], color=QUIET, linewidth=1.1, dashes=(5, 3), zorder=1)
    reach = min(last, 0.96 * top)
    place: dict[str, Any] = {"textcoords": "offset points", "ha": "right", "va": "center"}
    axes.annotate("ideal", xy=(reach, reach), xytext=(-9, 0), color=QUIET, **place)


def _draw_exchange(
    axes: Axes, exchange: str, at: Mapping[int, Sequence[float]], aside: float
) -> tuple[float, float]:
    """Draw one exchange's line, points and whiskers; return where it ends."""
    colour = exchange_colour(exchange)
    places = [ranks + aside for ranks in at]
    middle = [median(values) for values in at.values()]
    begin = [1.0] if 1 not in at else []
    (line,) = axes.plot([*begin, *places], [*begin, *middle], color=colour, linewidth=1.7, zorder=3)
    if _COLOUR_ORDER.index(exchange) >= len(COLOURS):
        line.set_dashes(_KIN_DASHES)
    _draw_points(axes, places, list(at.values()), color=colour)
    return places[-1], middle[-1]


def _draw_points(
    axes: Axes, places: Sequence[float], values: Sequence[Sequence[float]], **look: Any
) -> None:
    """Draw the median of each list of values, with whiskers from the least to the greatest."""
    middle = [median(ratios) for ratios in values]
    below = [centre - min(ratios) for centre, ratios in zip(middle, values, strict=True)]
    above = [max(ratios) - centre for centre, ratios in zip(middle, values, strict=True)]
    look |= {"fmt": "o", "markersize": 3.8, "elinewidth": 1.1, "capsize": 2.2, "zorder": 4}
    axes.errorbar(places, middle, yerr=[below, above], **look)


def _name_lines(axes: Axes, ends: Mapping[str, tuple[float, float]]) -> None:
    """Write the name of each line to the right of its end."""
    top = axes.get_ylim()[1]
    heights = spread_labels({name: height for name, (_, height) in ends.items()}, 0.06 * top)
    for exchange, height in heights.items():
        place = (1.02, height / top)
        name_line(axes, exchange, ends[exchange], place, exchange_colour(exchange), gap=5)


def numbers_apart(numbers: Sequence[int], gap: float) -> list[int]:
    """Return those of rising numbers that are at least `gap` apart, the last among them."""
    kept = [numbers[-1]]
    for number in reversed(numbers[:-1]):
        if kept[-1] - number >= gap:
            kept.append(number)
    return kept[::-1]
