"""Measure, emulate and bound the speed-up of pipelines, as in tables I and II of paper 002."""

import argparse
import copy
import math
import os
import time
from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from actionspan.running.determinism import deterministic
from actionspan.streaming.pipeline import Pipeline
from actionspan_papers.estimates import Estimate
from actionspan_papers.experiments import Cell, Experiment, Row, Table, values
from actionspan_papers.partime.balance import WORKS, balanced
from actionspan_papers.partime.networks import Case, cases, sgd, squared
from actionspan_papers.partime.published import KINDS, printed_range
from actionspan_papers.partime.settings import SpeedSettings

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

LEARN: dict[str, Any] = {"loss": squared, "optimiser": sgd}
"""What a pipeline needs to learn where only time or bytes count."""
_FEWEST, _MOST = 6, 400  # samples of a measurement
_MEASURED_STAGES = 2  # the stages that have a core each where there are two
_EXECUTORS = ("thread", "process")
_KEYS = ["network", "R", "F", "work", "stages"]


def measure(
    network: nn.Module,
    stages: Sequence[nn.Module],
    sample: Tensor,
    target: Tensor,
    *,
    learning: bool,
    executor: str,
    pairs: int,
    samples: int,
) -> tuple[list[float], float]:
    """Return how much faster than a plain loop a pipeline is in its steady state, pair by pair.

    The stages are those of `network`; the loop has a copy. Which of both comes first alternates.
    The second value is the load of the machine around the pairs.
    """
    alone = copy.deepcopy(network).train(learning)
    for stage in stages:
        stage.train(learning)
    optimiser = sgd(alone.parameters()) if learning else None
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    speedups = []
    begun = os.getloadavg()[0]
    try:
        with Pipeline(stages, executor, **(LEARN if learning else {})) as pipeline:
            _steady(pipeline, sample, target, _FEWEST, learning=learning)
            _loop(alone, optimiser, sample, target, 2)
            for pair in range(pairs):
                if pair % 2:
                    piped = _steady(pipeline, sample, target, samples, learning=learning)
                looped = _loop(alone, optimiser, sample, target, samples)
                if not pair % 2:
                    piped = _steady(pipeline, sample, target, samples, learning=learning)
                speedups.append(looped / piped)
    finally:
        torch.set_num_threads(threads)
    return speedups, max(begun, os.getloadavg()[0])


def samples_for(seconds: float, sample_seconds: float) -> int:
    """Return how many samples take about so long."""
    return max(_FEWEST, min(_MOST, round(seconds / max(sample_seconds, 1e-9))))


def _loop(
    network: nn.Module,
    optimiser: torch.optim.Optimizer | None,
    sample: Tensor,
    target: Tensor,
    samples: int,
) -> float:
    """Return the seconds a sample of a plain loop."""
    begun = time.perf_counter()
    for _ in range(samples):
        with torch.set_grad_enabled(optimiser is not None):
            output = network(sample)
            if optimiser is not None:
                torch.autograd.backward((squared(output, target),))
                optimiser.step()
                optimiser.zero_grad(set_to_none=True)
    return (time.perf_counter() - begun) / samples


def _steady(
    pipeline: Pipeline, sample: Tensor, target: Tensor, samples: int, *, learning: bool
) -> float:
    """Return the seconds from answer to answer, between filling and draining."""
    margin = 2 * len(pipeline.report()) + 2
    given = (((sample, target) if learning else sample) for _ in range(samples + 2 * margin))
    times = [time.perf_counter() for _ in pipeline.run(given)]
    return (times[margin + samples - 1] - times[margin - 1]) / samples


class Wait(nn.Module):
    """A stage that takes time and computes nothing: a third forward, the rest backward."""

    def __init__(self, seconds: float, *, learning: bool) -> None:
        super().__init__()
        self.seconds, self.learning = seconds, learning
        self.weight = nn.Parameter(torch.zeros(()))

    def forward(self, value: Tensor) -> Tensor:
        """Wait, and return what came."""
        if not self.learning:
            time.sleep(self.seconds)
            return value + 0
        out: Tensor = _Waited.apply(value, self.weight, self.seconds)  # type: ignore[no-untyped-call]
        return out


class _Waited(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: Tensor, weight: Tensor, seconds: float) -> Tensor:
        ctx.seconds = seconds
        time.sleep(seconds / 3)
        return value + weight

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        time.sleep(2 * ctx.seconds / 3)
        return gradient, gradient.sum(), None


def emulate(
    seconds: Sequence[float], loop_seconds: float, *, learning: bool, samples: int
) -> float:
    """Return the speed-up over a loop of stages that wait as long as the real ones compute.

    It shows what filling, hand-over and the slowest stage leave of D; the cores do nothing.
    """
    value = torch.zeros(1, 16)
    stages = [Wait(own, learning=learning) for own in seconds]
    with Pipeline(stages, "thread", **(LEARN if learning else {})) as pipeline:
        return loop_seconds / _steady(pipeline, value, value, samples, learning=learning)


def _rows(arguments: argparse.Namespace, settings: SpeedSettings) -> list[Row]:
    """Return a row a network, work, number of stages and pair."""
    with deterministic(threads=1):
        return [
            row
            for case in cases(settings)
            for work in WORKS
            for row in _of_work(case, work, settings, arguments.cores)
        ]


def _of_work(case: Case, work: str, settings: SpeedSettings, cores: int) -> list[Row]:
    network, sample, learning = case.network(settings), case.sample(), WORKS[work]
    target = case.target(network)
    rows: list[Row] = []
    for depth, stages in balanced(network, sample, settings.depths, learning=learning):
        total = sum(stages.costs.seconds)
        count = samples_for(settings.measured_seconds, total)
        common: Row = {
            **case.named,
            "work": work,
            "stages": depth,
            "bound": stages.bound,
            "emulated": emulate(stages.seconds, total, learning=learning, samples=count),
            "slowest_stage_ms": 1000 * max(stages.seconds),
            "loop_cpu_ms": 1000 * total,
            "published_graph": printed_range(KINDS[case.name], work, depth, graph=True),
            "published_eager": printed_range(KINDS[case.name], work, depth, graph=False),
        }
        if depth != _MEASURED_STAGES or cores < depth:
            unknown: Row = {"executor": "", "pair": "", "measured": math.nan, "load": math.nan}
            rows.append({**common, **unknown})
            continue
        how: dict[str, Any] = {"learning": learning, "pairs": settings.pairs, "samples": count}
        for executor in _EXECUTORS:
            speedups, load = measure(network, stages, sample, target, executor=executor, **how)
            rows += [
                {**common, "executor": executor, "pair": pair, "measured": speedup, "load": load}
                for pair, speedup in enumerate(speedups, start=1)
            ]
    return rows


def _table(rows: "DataFrame", arguments: argparse.Namespace, settings: SpeedSettings) -> Table:
    cores, loads = arguments.cores, rows["load"].dropna()
    load = f"{min(loads):.1f} to {max(loads):.1f}" if len(loads) else "not noted"
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
    titles |= {name: name for name in ("share", "emulated", "bound")}
    titles |= {"slowest_stage_ms": "slowest stage, ms"}
    titles |= {"published_graph": "published, graph", "published_eager": "published, without"}
    forms = dict.fromkeys(["share", "emulated", "bound", "slowest_stage_ms"], ".2f")
    align = "lrrlrrrrrrrll"
    shown = [_shown(pairs) for _, pairs in rows.groupby(_KEYS, sort=False)]
    return Table(caption=caption, titles=titles, rows=shown, forms=forms, align=align)


def _shown(pairs: "DataFrame") -> Row:
    """Return the row of a network, R, F, work and number of stages, of its pairs."""
    row: dict[str, Cell] = {**pairs.iloc[0], **dict.fromkeys(_EXECUTORS, "")}
    medians = []
    for name in _EXECUTORS:
        if len(found := values(pairs, "measured", executor=name)):
            medians.append(median(found))
            row[name] = Estimate(value=medians[-1], low=min(found), high=max(found))
    return {**row, "share": max(medians, default=math.nan) / pairs["bound"].iloc[0]}


def _draw(figure: "Figure", rows: "DataFrame", *_: object) -> None:
    """Draw measured speed-ups at two stages over those possible, and bounds over D."""
    from actionspan.files.figures import COLOURS, QUIET

    left, right = figure.subplots(1, 2)
    networks = rows["network"].unique()
    colours = dict(zip(networks, COLOURS, strict=False))
    marks = {"inference": "o", "learning": "s"}
    for (network, _, _, work, _), pairs in rows.groupby(_KEYS, sort=False):
        slowest = round(float(pairs["slowest_stage_ms"].iloc[0]), 2)
        look = {"color": colours[network], "markersize": 4}
        for executor, fill in zip(_EXECUTORS, (colours[network], "none"), strict=True):
            if len(found := values(pairs, "measured", executor=executor)):
                left.plot(slowest, median(found), marks[work], markerfacecolor=fill, **look)
    left.axhline(2, color=QUIET, linewidth=0.8)
    key = "● inference, ■ learning; filled: threads, open: processes"
    left.set(title="measured, D = 2", xlabel=f"slowest stage (ms)\n{key}", xscale="log")
    left.set_ylabel("speed-up")
    left.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    left.xaxis.set_minor_formatter(lambda value, _: "")
    depths = sorted(rows["stages"].unique())
    for network in networks:
        for column, line in (("bound", "-"), ("emulated", "--")):
            means = [values(rows, column, network=network, stages=depth).mean() for depth in depths]
            name = f"{network}, {column}"
            right.plot(depths, means, line, color=colours[network], label=name, linewidth=1.4)
    right.plot(depths, depths, color=QUIET, linewidth=0.8)
    right.set(title="bound and emulated, means", xlabel="stages D", xticks=depths)
    legend = right.get_legend_handles_labels()
    figure.legend(*legend, loc="outside right center", frameon=False, fontsize=7)


_MEASURED = ["bound", "emulated", "slowest_stage_ms", "loop_cpu_ms", "measured"]
CORES = {"type": int, "default": 2, "help": "that the rule has; more stages are only emulated"}
EXPERIMENT = Experiment(
    inputs={"cores": CORES},
    rows=_rows,
    table=_table,
    figure=_draw,
    size=(8.4, 3.8),
    settings=(SpeedSettings,),
    forms={**dict.fromkeys(_MEASURED, ".4f"), "load": ".2f"},
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
