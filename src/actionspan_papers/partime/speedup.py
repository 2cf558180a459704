"""Measure, emulate and bound the speed-up of pipelines, as in tables I and II of paper 002."""

import math
from collections.abc import Iterator
from itertools import product
from statistics import median

from actionspan_papers.estimates import Estimate
from actionspan_papers.experiments import Cell, Experiment, Row, Table, values
from actionspan_papers.kinds import DataFrame, Figure, Flags
from actionspan_papers.partime.published import KINDS, printed_range
from actionspan_papers.partime.settings import EXECUTORS, WORKS, SpeedSettings

_KEYS = ["network", "R", "F", "work", "stages"]
_MEASURED_STAGES = 2  # the stages that have a core each where there are two


def _rows(arguments: Flags, settings: SpeedSettings) -> Iterator[Row]:
    """Yield a row a network, work, number of stages and pair."""
    from actionspan_papers.partime.networks import cases
    from actionspan_papers.partime.pipelines import balanced, emulate, measure, samples_for

    for case, (work, learning) in product(cases(settings), WORKS.items()):
        network, sample = case.network(settings), case.sample()
        target, kind = case.target(network) if learning else None, KINDS[case.name]
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
                "published_graph": printed_range(kind, work, depth, graph=True),
                "published_eager": printed_range(kind, work, depth, graph=False),
            }
            if depth != _MEASURED_STAGES or arguments.cores < depth:
                yield {**common, "executor": "", "pair": "", "measured": math.nan, "load": math.nan}
                continue
            how = {"pairs": settings.pairs, "samples": count}
            for executor in EXECUTORS:
                speedups, load = measure(network, stages, sample, target, executor=executor, **how)
                for pair, speedup in enumerate(speedups, start=1):
                    own: Row = {
                        "executor": executor,
                        "pair": pair,
                        "measured": speedup,
                        "load": load,
                    }
                    yield {**common, **own}


def _table(rows: DataFrame, arguments: Flags, settings: SpeedSettings) -> Table:
    cores, loads = arguments.cores, rows["load"].dropna()
    load = f"{min(loads):.1f} to {max(loads):.1f}" if len(loads) else "not noted"
    caption = [
        "Speed-up of a pipeline over a plain loop on one thread (tables I and II). Three kinds of "
        "numbers, never one:",
        f"- **measured**: {settings.pairs} interleaved pairs of loop and pipeline, {cores} cores: "
        "median and range of the pairs, with threads and with processes; load of the machine in "
        f"the minute around them: {load} (above {cores} others were at work too).",
        "- **emulated**: the stages wait for their measured time and compute nothing.",
        "- **bound**: CPU time of the network by its slowest stage's, messages included; "
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


def _shown(pairs: DataFrame) -> Row:
    """Return the row of a network, R, F, work and number of stages, of its pairs."""
    row: dict[str, Cell] = {**pairs.iloc[0], **dict.fromkeys(EXECUTORS, "")}
    medians = []
    for name in EXECUTORS:
        if len(found := values(pairs, "measured", executor=name)):
            medians.append(median(found))
            row[name] = Estimate(value=medians[-1], low=min(found), high=max(found))
    return {**row, "share": max(medians, default=math.nan) / pairs["bound"].iloc[0]}


def _draw(figure: Figure, rows: DataFrame, *_: object) -> None:
    """Draw measured speed-ups at two stages over those possible, and bounds over D."""
    from actionspan.storage.figures import COLOURS, QUIET

    left, right = figure.subplots(1, 2)
    networks = rows["network"].unique()
    colours = dict(zip(networks, COLOURS, strict=False))
    marks = {"inference": "o", "learning": "s"}
    for (network, _, _, work, _), pairs in rows.groupby(_KEYS, sort=False):
        slowest = round(float(pairs["slowest_stage_ms"].iloc[0]), 2)
        look = {"color": colours[network], "markersize": 4}
        for executor, fill in zip(EXECUTORS, (colours[network], "none"), strict=True):
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
    repeatable=True,
    forms={**dict.fromkeys(_MEASURED, ".4f"), "load": ".2f"},
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
