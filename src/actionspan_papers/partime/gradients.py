"""Compare the gradients of pipelines with the true ones over the speed of streams."""

import copy
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from actionspan_papers.experiments import Cell, Experiment, Row, Table, over_rows, values, where
from actionspan_papers.kinds import Axes, DataFrame, Figure, Flags, Tensor
from actionspan_papers.partime.settings import (
    MODES,
    GradientSettings,
    PartimeSettings,
    Variant,
    variants,
)

_MEASURED = 30  # steps of a stream in which gradients are compared
_LINES = {"paper": "-", "inputs": "--", "stash": ":"}
_SLOWEST = 1e-4  # a stream that stands still has no place on a logarithmic axis
_TICKS = [1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1]
_TITLES = {"random": "random streams", "frames": "frames of videos"}


class _Stream(NamedTuple):
    """Samples with their targets, the network that learns them, and its step size."""

    kind: str
    setting: str
    inputs: Tensor
    targets: Tensor
    network: Any
    rate: float


def _rows(arguments: Flags, own: PartimeSettings, settings: GradientSettings) -> Iterator[Row]:
    """Yield a row a stream, number of stages, mode, stage and seed."""
    for seed in range(1, own.seeds + 1):
        streams = _streams(arguments.frames, seed, settings)
        for stream, variant in product(streams, variants(own.stages, last_only=False)):
            yield from _measured(stream, seed, variant)


def _streams(frames: Path, seed: int, settings: GradientSettings) -> Iterator[_Stream]:
    """Yield every stream of a seed; a network of the seed begins each the same."""
    import torch
    from torch import nn

    from actionspan_papers.partime import footage, networks

    shown = footage.Footage(frames)
    wanted = networks.teacher(torch.Generator().manual_seed(seed))
    for correlation in settings.correlations:
        inputs = footage.random_stream(correlation, settings.samples, seed)
        torch.manual_seed(seed)
        sizes = networks.RANDOM_INPUTS, networks.RANDOM_UNITS, networks.RANDOM_OUTPUTS
        network = networks.perceptron(*sizes, nn.Tanh)
        name, rate = f"correlation {correlation:g}", settings.learning_rate
        yield _Stream("random", name, inputs, wanted(inputs), network, rate)
    for every in settings.subsampling:
        given = footage.frame_stream(shown, every, settings.samples, seed)
        torch.manual_seed(seed)
        name = "every frame" if every == 1 else f"every {every} frames"
        rate = settings.frames_learning_rate
        yield _Stream("frames", name, given, given, networks.autoencoder(), rate)


def _measured(stream: _Stream, seed: int, variant: Variant) -> list[Row]:
    """Return a row for each stage of a pipeline that learns a stream."""
    import torch

    from actionspan.streaming.pipeline import Pipeline
    from actionspan_papers.partime.footage import speed
    from actionspan_papers.partime.networks import in_stages, squared
    from actionspan_papers.partime.pipelines import Probe, footprints

    parts = in_stages(copy.deepcopy(stream.network), variant.stages)
    probe, count = Probe(parts), len(stream.inputs)
    first = max(2 * variant.stages, count // 4)
    chosen = set(np.linspace(first, count - 1, min(_MEASURED, count - first)).astype(int).tolist())
    cosines, losses = [], []

    def sample(index: int) -> tuple[Tensor, Tensor]:
        return stream.inputs[index : index + 1], stream.targets[index : index + 1]

    how: dict[str, Any] = {"loss": squared, "gradients": variant.gradients}
    sgd = partial(torch.optim.SGD, lr=stream.rate)
    with Pipeline(parts, optimiser=sgd, clip=probe.clips, **how) as pipeline:
        for step in range(count):
            if step in chosen:
                probe.before()
            answer = pipeline.step(*sample(step))
            if step in chosen:
                cosines.append(probe.cosines(step, sample))
            if answer is not None and answer.loss is not None:
                losses.append(answer.loss)
        used = sum(report["cpu_seconds"] for report in pipeline.report())
    named = {"stream": stream.kind, "setting": stream.setting, **variant.cells}
    means = np.nanmean(np.array(cosines), axis=0)
    sizes = footprints(parts, *sample(0), variant.gradients)
    return [
        {
            **named,
            "stage": stage,
            "seed": seed,
            "cosine": float(mean),
            "speed": speed(stream.inputs),
            "late_loss": float(np.mean(losses[3 * len(losses) // 4 :])),
            "cpu_ms_a_step": 1000 * used / count,
            "bytes": size.total,
            "kept_bytes": size.kept,
        }
        for stage, (mean, size) in enumerate(zip(means, sizes, strict=True), start=1)
    ]


def _table(rows: DataFrame, _: Flags, own: PartimeSettings, settings: GradientSettings) -> Table:
    kinds = list(rows.groupby("stream", sort=False))
    caption = [
        "Cosine of the gradient that a stage uses with the true one: the gradient of the same "
        "sample's loss, with the weights of now. Speed is 1 less the correlation of successive "
        f"samples. {own.seeds} seeds; means and {100 * own.confidence:g} % intervals over seeds.",
        *(_verdict(kind, runs, own, settings.good_cosine) for kind, runs in kinds),
        *(_cost_line(kind, runs, own) for kind, runs in kinds),
        f"SGD, step size {settings.learning_rate:g} on random streams and "
        f"{settings.frames_learning_rate:g} on frames, {settings.samples} samples a stream. Random "
        "streams: AR(1) inputs, a fixed network gives the targets, four linear layers learn them. "
        "Frames: four convolutions learn to give a frame back. Late loss: mean of the last "
        "quarter.",
    ]
    titles = {name: name for name in ("stream", "setting", "speed")}
    titles |= {"stages": "D", "gradients": "gradients", "late_loss": "late loss"}
    titles |= {f"stage{stage}": f"stage {stage}" for stage in range(1, own.stages[-1] + 1)}
    shown = [
        _shown(where(runs, setting=setting, **variant.cells), speed, own)
        for _, runs in kinds
        for setting, speed in by_speed(runs)
        for variant in variants(own.stages, last_only=False)
    ]
    return Table(caption=caption, titles=titles, rows=shown, forms={"speed": ".2g"})


def _verdict(kind: str, runs: DataFrame, own: PartimeSettings, good: float) -> str:
    """Return where the paper's gradients stop being good enough on a kind of stream."""
    parts = []
    for stages in own.stages:
        last, first = _limits(runs, stages, good)
        some = f"up to {last}, no longer at {first}" if last else "on none"
        parts.append(f"at {stages} stages {some if first else 'on every one'}")
    return (
        f"On {_TITLES[kind]} the first stage's gradients of the paper are good enough "
        f"(cosine {good:g}) {'; '.join(parts)}."
    )


def _limits(runs: DataFrame, stages: int, good: float) -> tuple[str, str]:
    """Return the fastest setting with good gradients of the first stage, and the next; or empty."""
    last = ""
    cosine = partial(values, runs, "cosine", stages=stages, gradients="paper", stage=1)
    for setting, _ in by_speed(runs):
        if not cosine(setting=setting).mean() >= good:
            return last, setting
        last = setting
    return last, ""


def by_speed(runs: DataFrame) -> list[tuple[str, float]]:
    """Return the settings of a kind of stream with their mean speeds, slowest first."""
    settings = runs.groupby("setting", sort=False)["speed"]
    speeds = [(setting, float(each.to_numpy().mean())) for setting, each in settings]
    return sorted(speeds, key=lambda pair: pair[1])


def _costs(runs: DataFrame, stages: int) -> Mapping[str, tuple[float, float]]:
    """Return bytes of all stages and CPU milliseconds of a step, by mode; medians of the runs."""
    found: dict[str, tuple[float, float]] = {}
    for mode in MODES:
        by_stage = where(runs, stages=stages, gradients=mode).groupby("stage")
        medians = by_stage[["bytes", "cpu_ms_a_step"]].median()
        found[mode] = float(medians["bytes"].sum()), float(medians.at[1, "cpu_ms_a_step"])
    return found


def _cost_line(kind: str, runs: DataFrame, own: PartimeSettings) -> str:
    """Return what `inputs` costs more than the paper's mode."""
    parts = []
    for stages in own.stages:
        cost = _costs(runs, stages)
        (memory, time), (more, longer) = cost["paper"], cost["inputs"]
        parts.append(
            f"at {stages} stages {(more - memory) / 1024:.1f} KiB "
            f"({100 * (more / memory - 1):+.0f} %) and {longer - time:.2f} ms of CPU time a "
            f"step ({100 * (longer / time - 1):+.0f} %)"
        )
    return f"`inputs` costs on {_TITLES[kind]} {'; '.join(parts)} more than `paper`."


def _shown(runs: DataFrame, speed: float, own: PartimeSettings) -> Row:
    """Return the row of a stream, number of stages and mode, a column a stage."""
    late = over_rows(runs, "late_loss", own.confidence, ".4f", stage=1)
    named = runs.iloc[0][["stream", "setting", "stages", "gradients"]]
    row: dict[str, Cell] = {**named, "speed": speed, "late_loss": late}
    for stage in range(1, own.stages[-1] + 1):
        there = stage <= named["stages"]
        cosine = over_rows(runs, "cosine", own.confidence, stage=stage) if there else ""
        row[f"stage{stage}"] = cosine
    return row


def _draw(
    figure: Figure, rows: DataFrame, _: Flags, own: PartimeSettings, settings: GradientSettings
) -> None:
    """Draw cosines and late losses over speed, a column a kind of stream, and costs below."""
    kinds, good = list(rows.groupby("stream", sort=False)), settings.good_cosine
    panels = figure.subplots(3, len(kinds), squeeze=False, height_ratios=[1.6, 1, 0.9])
    for column, (kind, runs) in enumerate(kinds):
        top, middle, bottom = panels[:, column]
        _draw_lines(top, runs, own, "cosine")
        top.axhline(good, color="#6b7078", linewidth=0.8, linestyle=(0, (1, 2)))
        top.set_title(_TITLES[kind], pad=30)
        top.set(ylim=(min(-0.05, top.get_ylim()[0]), 1.04))
        # the last stream on which the paper's gradients are good enough, for each D
        reached = [f"D = {d}: {_limits(runs, d, good)[0] or 'on none'}" for d in own.stages]
        top.set_xlabel(f"`paper` is ≥ {good:g} up to\n{'; '.join(reached)}", fontsize=8)
        for setting, place in by_speed(runs):
            name = setting.removeprefix("correlation ").removesuffix(" frames")
            look: dict[str, Any] = {"fontsize": 6.5, "ha": "left", "rotation": 35}
            top.annotate(
                name, (max(place, _SLOWEST), 1.02), xycoords=("data", "axes fraction"), **look
            )
        _draw_lines(middle, runs, own, "late_loss")
        middle.set_xlabel("speed: 1 − correlation of successive samples")
        _draw_costs(bottom, runs, own, named=column == 0)
    panels[0, 0].set_ylabel("cosine of stage 1's gradient\nwith the true one")
    panels[1, 0].set_ylabel("late loss ÷\nloss of D = 1")
    panels[0, 0].legend(frameon=False, fontsize=7.5, loc="lower left")


def _draw_lines(axes: Axes, runs: DataFrame, own: PartimeSettings, column: str) -> None:
    from matplotlib.ticker import FixedLocator, NullFormatter

    from actionspan.storage.figures import COLOURS

    settings = by_speed(runs)
    places = [max(speed, _SLOWEST) for _, speed in settings]
    first = where(runs, stage=1)
    for colour, stages in zip(COLOURS, own.stages, strict=False):
        for mode in MODES:
            way = where(first, stages=stages, gradients=mode)
            seeds = np.array([values(way, column, setting=name) for name, _ in settings])
            if column == "late_loss":
                alone = where(first, stages=1)
                seeds /= np.array([values(alone, column, setting=name) for name, _ in settings])
            look: dict[str, Any] = {"color": colour, "linestyle": _LINES[mode], "linewidth": 1.4}
            look |= {"label": f"D = {stages}, {mode}", "marker": "o", "markersize": 3}
            axes.plot(places, seeds.mean(axis=1), **look)  # (settings, S)
            ends = seeds.min(axis=1), seeds.max(axis=1)
            axes.fill_between(places, *ends, color=colour, alpha=0.08, linewidth=0)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(_TICKS))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())


def _draw_costs(axes: Axes, runs: DataFrame, own: PartimeSettings, *, named: bool) -> None:
    """Draw what `inputs` and `stash` cost more than `paper`, in percent."""
    from actionspan.storage.figures import COLOURS

    names, heights, colours = [], [], []
    for colour, stages in zip(COLOURS, own.stages, strict=False):
        found = _costs(runs, stages)
        for mode in MODES[1:]:
            for what, place in (("memory", 0), ("CPU time", 1)):
                names.append(f"D = {stages}, {mode}: {what}")
                heights.append(100 * (found[mode][place] / found["paper"][place] - 1))
                colours.append(colour)
    axes.barh(names, heights, color=colours, height=0.7)
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.tick_params(axis="y", labelsize=7, labelleft=named)
    axes.set_xlabel("more than `paper` (%)")
    for place, height in enumerate(heights):
        axes.annotate(f" {height:+.0f}", (max(height, 0), place), va="center", fontsize=7)


EXPERIMENT = Experiment(
    inputs={"frames": "file of `partime frames`"},
    rows=_rows,
    table=_table,
    figure=_draw,
    size=(8.4, 6.6),
    settings=(PartimeSettings, GradientSettings),
    repeatable=True,
    forms={"cosine": ".4f", "cpu_ms_a_step": ".4f"},
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
