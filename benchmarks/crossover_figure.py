"""The figure of `crossover.py`: who is the fastest where, and how close simulations come."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from actionspan.storage.figures import COLOURS, INK, QUIET, house_style, save_figure
from simulation.calibration import Row
from simulation.ranks import Costs
from simulation.rounds import simulated_seconds

NAMES = {
    "ring": "ring",
    "ps": "central server (own rank)",
    "ps_sharded": "sharded servers",
    "mpi": "MPI_Allreduce (model)",
}
STYLES = {  # the colours that exchanges have in every figure of ours
    "ring": {"color": COLOURS[0], "linewidth": 2.4},
    "ps": {"color": COLOURS[1]},
    "ps_sharded": {"color": COLOURS[3], "dashes": (3, 1.6)},
    "mpi": {"color": COLOURS[2]},
}
EVEN = "ring"  # stands for the sharded servers too: they send as much, and as often
FAMILIES = (EVEN, "ps", "mpi")
MIB = 2**20
NEAR = 0.05

Seconds = dict[tuple[str, int, int], float]


def draw(
    path: Path,
    seconds: Seconds,
    rows: Sequence[Row],
    costs: Costs,
    numbers: tuple[Sequence[int], Sequence[int]],
    sizes: Sequence[int],
) -> None:
    """Draw maps of the fastest exchange above, seconds against emulated ones below.

    Args:
        path: An .svg or .png file.
        seconds: Simulated, by algorithm, ranks and bytes.
        rows: Measured over the emulated network.
        costs: What was fitted to them, with the links' burst.
        numbers: Ranks that are powers of two, and others.
        sizes: Of messages, in bytes.
    """
    with house_style(), rc_context({"hatch.linewidth": 0.5, "hatch.color": QUIET}):
        layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08, wspace=0.05, hspace=0.07)
        figure = Figure(figsize=(9.4, 7.8), layout=layout)
        (left, right), (over_size, over_ranks) = figure.subplots(2, 2)
        _map(left, seconds, rows, numbers[0], sizes)
        _map(right, seconds, rows, numbers[1], sizes)
        left.set_title("Simulated: fastest on 2ᵏ ranks")
        right.set_title("Simulated: fastest on 3·2ᵏ ranks")
        _name(left, 2**14, 700, "MPI_Allreduce", "mpi")
        _name(left, 2**25, 5, "ring", "ring")
        _name(left, 2**20.3, 50, "within 5 %", None)
        _name(right, 2**13, 700, "MPI_Allreduce", "mpi")
        _name(right, 2**23, 30, "ring,\nsharded servers", "ring")
        _over_size(over_size, rows, costs, sizes)
        _over_ranks(over_ranks, rows, costs, numbers)
        handles = [Line2D([], [], **STYLES[name]) for name in NAMES]
        labels = [f"{name}, simulated" for name in NAMES.values()]
        handles.append(Line2D([], [], color=QUIET, marker="o", linestyle="", markersize=4.5))
        labels.append("emulated: real MPI over rate-limited links")
        figure.legend(handles, labels, loc="outside upper left", ncols=3, frameon=False)
        save_figure(figure, path)


def _name(axes: Axes, size: float, ranks: float, text: str, exchange: str | None) -> None:
    """Write a name into a region of a map."""
    axes.text(
        size,
        ranks,
        text,
        ha="center",
        va="center",
        weight="bold" if exchange else "normal",
        color=STYLES[exchange]["color"] if exchange else INK,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 2},
        zorder=5,
    )


def _map(
    axes: Axes,
    seconds: Seconds,
    rows: Sequence[Row],
    numbers: Sequence[int],
    sizes: Sequence[int],
) -> None:
    """Colour the plane of message size and ranks by the fastest exchange."""
    logs = {
        name: np.log([[seconds[name, ranks, size] for size in sizes] for ranks in numbers])
        for name in FAMILIES
    }
    best = np.minimum.reduce(list(logs.values()))
    for name in FAMILIES:
        others = np.minimum.reduce([logs[other] for other in FAMILIES if other != name])
        lead = others - logs[name]
        colour = STYLES[name]["color"]
        axes.contourf(sizes, numbers, lead, levels=[0, np.inf], colors=[colour], alpha=0.32)
        axes.contour(sizes, numbers, lead, levels=[0], colors=[INK], linewidths=0.9)
    near = np.maximum(logs[EVEN], logs["mpi"]) - best
    axes.contourf(
        sizes, numbers, near, levels=[-1, np.log1p(NEAR)], colors="none", hatches=["////"]
    )
    _emulated_winners(axes, rows, numbers)
    axes.set(xscale="log", yscale="log", xlim=(sizes[0], sizes[-1]), ylim=(numbers[0], numbers[-1]))
    _binary_axis(axes, sizes)
    _rank_axis(axes.yaxis, numbers)
    axes.set(xlabel="message size", ylabel="ranks")
    axes.grid(visible=False)


def _emulated_winners(axes: Axes, rows: Sequence[Row], numbers: Sequence[int]) -> None:
    """Mark who was the fastest over the emulated links."""
    times: dict[tuple[int, int], dict[str, float]] = {}
    for row in rows:
        if row.ranks in numbers and row.algorithm in STYLES:
            times.setdefault((row.bytes, row.ranks), {})[row.algorithm] = row.seconds
    for (size, ranks), measured in times.items():
        winner = min(measured, key=lambda name: measured[name])
        axes.plot(
            [size],
            [ranks],
            marker="o",
            markersize=5.5,
            color=STYLES[winner]["color"],
            markeredgecolor="white",
            markeredgewidth=0.8,
            clip_on=False,
            zorder=4,
        )


def _over_size(axes: Axes, rows: Sequence[Row], costs: Costs, sizes: Sequence[int]) -> None:
    """Draw seconds over message size at the most ranks that were emulated."""
    most = max(row.ranks for row in rows)
    shown = [size for size in sizes if size <= 16 * MIB]
    for name in NAMES:
        times = [simulated_seconds(name, most, size, costs).max() for size in shown]
        axes.plot(shown, times, **STYLES[name])
        points = [row for row in rows if row.algorithm == name and row.ranks == most]
        _points(axes, [row.bytes for row in points], points, name)
    axes.set(xscale="log", yscale="log", xlim=(shown[0], shown[-1]))
    axes.set(xlabel="message size", ylabel="seconds", title=f"On {most} ranks")
    _binary_axis(axes, shown)
    _seconds_axis(axes)
    if costs.burst:
        note = f"with links that let {costs.burst / 1024:g} KiB\nthrough at once, as emulated"
        axes.text(0.98, 0.04, note, ha="right", transform=axes.transAxes, color=QUIET)


def _over_ranks(
    axes: Axes, rows: Sequence[Row], costs: Costs, numbers: tuple[Sequence[int], Sequence[int]]
) -> None:
    """Draw seconds over ranks at the size nearest 1 MiB that was emulated."""
    size = min({row.bytes for row in rows}, key=lambda size: abs(size - MIB))
    shown = sorted({*range(2, 9), *numbers[0], *numbers[1]})
    for name in NAMES:
        for part in numbers if name == "mpi" else [shown]:
            times = [simulated_seconds(name, ranks, size, costs).max() for ranks in part]
            axes.plot(part, times, **STYLES[name])
            if part is numbers[1]:
                axes.annotate("3·2ᵏ ranks", (part[5], 1.25 * times[5]), color=STYLES[name]["color"])
        points = [row for row in rows if row.algorithm == name and row.bytes == size]
        _points(axes, [row.ranks for row in points], points, name)
    axes.set(xscale="log", yscale="log", xlim=(shown[0], shown[-1]))
    axes.set(xlabel="ranks", ylabel="seconds", title=f"With {_binary(size)}")
    _rank_axis(axes.xaxis, numbers[0])
    _seconds_axis(axes)


def _points(axes: Axes, places: Sequence[int], rows: Sequence[Row], name: str) -> None:
    """Draw emulated seconds."""
    axes.plot(
        places,
        [row.seconds for row in rows],
        color=STYLES[name]["color"],
        marker="o",
        linestyle="",
        markersize=4.5,
        markeredgecolor="white",
        markeredgewidth=0.6,
        zorder=4,
    )


def _binary_axis(axes: Axes, sizes: Sequence[int]) -> None:
    """Label message sizes in powers of 16."""
    ticks = [size for index, size in enumerate(sizes) if index % 4 == 0]
    axes.set_xticks(ticks, [_binary(size) for size in ticks])
    axes.minorticks_off()


def _rank_axis(axis: Axis, numbers: Sequence[int]) -> None:
    """Label every other number of ranks."""
    ticks = numbers[::2]
    axis.set_ticks(ticks, [f"{ranks:,}" for ranks in ticks])
    axis.set_ticks([], minor=True)


def _seconds_axis(axes: Axes) -> None:
    """Label decades of seconds as plain numbers."""
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.yaxis.set_minor_locator(NullLocator())


def _binary(size: int) -> str:
    """Return a number of bytes in KiB or MiB."""
    return f"{size // MIB} MiB" if size >= MIB else f"{size // 1024} KiB"
