"""Measure, emulate and bound the speed-up of pipelines, as in tables I and II of paper 002."""

import argparse
from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from actionspan.settings import add_settings, from_arguments
from actionspan_papers.estimates import Estimate
from actionspan_papers.partime.settings import SpeedSettings
from actionspan_papers.rows import Row as Read
from actionspan_papers.rows import distinct, values
from actionspan_papers.tables import Row, add_outputs, write_figures, write_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_KEYS = ("network", "R", "F", "work", "stages")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument(
        "--cores", type=int, default=2, help="that the rule has; more stages are only emulated"
    )
    add_outputs(parser, figure=True)
    add_settings(parser, SpeedSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write a row a network, work, number of stages and pair, and the figure."""
    settings = from_arguments(SpeedSettings, arguments)
    from actionspan_papers.partime.speed_rows import speedup_rows

    rows = speedup_rows(settings, arguments.cores)
    caption, titles, align = _summary(rows, settings, arguments.cores)
    write_table(arguments, rows, caption, align, titles, _shown_rows(rows))
    write_figures(arguments, lambda figure: _draw(figure, rows), (8.4, 3.8))


def _summary(
    rows: Sequence[Read], settings: SpeedSettings, cores: int
) -> tuple[list[str], dict[str, str], str]:
    """Return the caption, the titles and the alignment of the table to read."""
    loads = [float(row["load"]) for row in rows if row["load"]]
    load = f"{min(loads):.1f} to {max(loads):.1f}" if loads else "not noted"
    caption = [
        "Speed-up of a pipeline over a plain loop on one thread (tables I and II). Three kinds of "
        "numbers, never one:",
        f"- **measured**: {settings.pairs} interleaved pairs of loop and pipeline, {cores} cores: "
        "median and range of the pairs, with threads and with processes; load of the machine in "
        f"the minute around them: {load} (above {cores} others were at work too).",
        "- **emulated**: the stages wait for their measured time and compute nothing.",
        "- **bound**: CPU time of the network by that of its slowest stage, messages included; "
        "share: measured by bound.",
        f"Here: {settings.layers} convolutions of {settings.maps} maps (paper: 150), images of R "
        "× R, F outputs. Published: lowest and highest of all R and F, with CUDA graph and "
        "without, on GPUs.",
    ]
    titles = {name: "D" if name == "stages" else name for name in _KEYS}
    titles |= {"thread": "measured, threads", "process": "measured, processes"}
    titles |= {"share": "share", "emulated": "emulated", "bound": "bound"}
    titles |= {"slowest": "slowest stage, ms"}
    titles |= {"published_graph": "published, graph", "published_eager": "published, without"}
    return caption, titles, "lrrlr" + "rrrrrrll"


def _shown_rows(rows: Sequence[Read]) -> list[Row]:
    """Return a row a network, R, F, work and number of stages."""
    shown: list[Row] = []
    for key in dict.fromkeys(tuple(row[name] for name in _KEYS) for row in rows):
        chosen: dict[str, object] = dict(zip(_KEYS, key, strict=True))
        first = next(row for row in rows if tuple(row[name] for name in _KEYS) == key)
        bound = float(first["bound"])
        by = {executor: ratios(rows, chosen, executor) for executor in ("thread", "process")}
        best = max((median(found) for found in by.values() if len(found)), default=float("nan"))
        shown.append(
            {
                **{name: str(value) for name, value in chosen.items()},
                **{executor: _ranged(found) for executor, found in by.items()},
                "share": "" if np.isnan(best) else f"{best / bound:.2f}",
                "emulated": f"{float(first['emulated']):.2f}",
                "bound": f"{bound:.2f}",
                "slowest": f"{float(first['slowest_stage_ms']):.2f}",
                "published_graph": first["published_graph"],
                "published_eager": first["published_eager"],
            }
        )
    return shown


def ratios(rows: Sequence[Read], chosen: Mapping[str, object], executor: str) -> list[float]:
    """Return the measured speed-up of each pair."""
    found = values(rows, "measured", **{**chosen, "executor": executor})
    return [float(value) for value in found]


def _ranged(found: Sequence[float]) -> Estimate | str:
    if not found:
        return ""
    return Estimate(value=median(found), low=min(found), high=max(found))


def _draw(figure: "Figure", rows: Sequence[Read]) -> None:
    """Draw measured speed-ups at two stages over those possible, and bounds over D."""
    from actionspan.files.figures import COLOURS, QUIET

    left, right = figure.subplots(1, 2)
    networks = distinct(rows, "network")
    colours = dict(zip(networks, COLOURS, strict=False))
    marks = {"inference": "o", "learning": "s"}
    for row in _shown_rows(rows):
        for executor, filled in (("thread", True), ("process", False)):
            cell = row[executor]
            if isinstance(cell, Estimate):
                colour = colours[str(row["network"])]
                left.plot(
                    float(str(row["slowest"])),
                    cell.value,
                    marks[str(row["work"])],
                    color=colour,
                    markerfacecolor=colour if filled else "none",
                    markersize=4,
                )
    left.axhline(2, color=QUIET, linewidth=0.8)
    key = "● inference, ■ learning; filled: threads, open: processes"
    left.set(title="measured, D = 2", xlabel=f"slowest stage (ms)\n{key}", xscale="log")
    left.set_ylabel("speed-up")
    left.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    left.xaxis.set_minor_formatter(lambda value, _: "")
    depths = sorted(map(int, distinct(rows, "stages")))
    for network in networks:
        for column, look in (("bound", "-"), ("emulated", "--")):
            means = [
                float(np.mean(values(rows, column, network=network, stages=depth)))
                for depth in depths
            ]
            name = f"{network}, {column}"
            right.plot(depths, means, look, color=colours[network], label=name, linewidth=1.4)
    right.plot(depths, depths, color=QUIET, linewidth=0.8)
    right.set(title="bound and emulated, means", xlabel="stages D", xticks=depths)
    handles, labels = right.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=7)
