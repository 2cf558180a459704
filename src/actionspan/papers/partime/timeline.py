"""Draw which stage works on which sample when, as in figures 1 and 2 of paper 002."""

import argparse
from typing import TYPE_CHECKING

import torch

from actionspan.papers.curves import write_figures
from actionspan.papers.partime.cases import PLAIN, Case, inside, squared
from actionspan.papers.partime.runs import number
from actionspan.papers.partime.settings import SpeedSettings
from actionspan.papers.partime.timing import Wait, sgd
from actionspan.papers.tables import add_outputs, write_table
from actionspan.running.determinism import deterministic
from actionspan.settings import add_settings, from_arguments
from actionspan.streaming import Pipeline, balance_stages

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SAMPLES = 14
_WAIT = 0.03  # seconds of a stage that waits
MEASURED, EMULATED = "measured", "emulated"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_outputs(parser, figure=True)
    add_settings(parser, SpeedSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write a row an event of stages that learn, and the figure."""
    settings = from_arguments(SpeedSettings, arguments)
    with deterministic(threads=1):
        rows = _measured(settings) + _emulated(4)
    caption = [
        "Events of pipelines that learn, from the clocks of their threads; the TSV has every one. "
        "Measured: two stages of the plain convolutions. Emulated: four stages that wait.",
        "Delay: steps from the forward pass of a sample in a stage to the backward pass of its "
        "loss's gradient there; the paper's is 2(D − h) for stage h.",
    ]
    titles = {"kind": "kind", "stages": "D", "stage": "stage h"}
    titles |= {"delay": "delay, steps", "published": "2(D − h)", "first": "first learned at step"}
    write_table(arguments, rows, caption, "lrrrrr", titles, shown_rows(rows))
    write_figures(arguments, lambda figure: _draw(figure, rows), (8.4, 3.6))


def delays(rows: list[dict[str, str]], kind: str, stage: str) -> list[int]:
    """Return the delay of every sample whose gradient reached a stage."""
    own = [row for row in rows if row["kind"] == kind and row["stage"] == stage]
    began = {row["sample"]: int(row["step"]) for row in own if row["work"] == "forward"}
    return [
        int(row["step"]) - began[row["sample"]]
        for row in own
        if row["work"] == "backward" and row["sample"] in began
    ]


def shown_rows(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return a row a stage."""
    shown = []
    for kind, stages, stage in dict.fromkeys(
        (row["kind"], row["stages"], row["stage"]) for row in rows
    ):
        found = sorted(set(delays(rows, kind, stage)))
        learned = [
            int(row["step"])
            for row in rows
            if (row["kind"], row["stage"], row["work"]) == (kind, stage, "backward")
        ]
        shown.append(
            {
                "kind": kind,
                "stages": stages,
                "stage": stage,
                "delay": ", ".join(map(str, found)),
                "published": str(2 * (int(stages) - int(stage))),
                "first": str(min(learned)),
            }
        )
    return shown


def _measured(settings: SpeedSettings) -> list[dict[str, str]]:
    case = Case(PLAIN, settings.sides[-1], settings.outputs[-1])
    network, sample = case.network(settings), case.sample()
    stages = balance_stages(network, sample, 2, learning=True, divide=inside, repetitions=3)
    target = case.target(network)
    with Pipeline(stages, "thread", loss=squared, optimiser=sgd, record=True) as pipeline:
        list(pipeline.run((sample, target) for _ in range(_SAMPLES)))
        return _events(MEASURED, pipeline)


def _emulated(stages: int) -> list[dict[str, str]]:
    parts = [Wait(_WAIT, learning=True) for _ in range(stages)]
    value = torch.zeros(1, 4)
    with Pipeline(parts, "thread", loss=squared, optimiser=sgd, record=True) as pipeline:
        list(pipeline.run((value, value) for _ in range(_SAMPLES)))
        return _events(EMULATED, pipeline)


def _events(kind: str, pipeline: Pipeline) -> list[dict[str, str]]:
    reports = pipeline.report()
    first = min(event.begin for report in reports for event in report["events"])
    return [
        {
            "kind": kind,
            "stages": str(len(reports)),
            "stage": str(stage + 1),
            "step": str(event.step),
            "sample": str(event.sample),
            "work": event.work,
            "begin_ms": number(1000 * (event.begin - first), ".3f"),
            "end_ms": number(1000 * (event.end - first), ".3f"),
        }
        for stage, report in enumerate(reports)
        for event in report["events"]
    ]


def _draw(figure: "Figure", rows: list[dict[str, str]]) -> None:
    panels = figure.subplots(2, 1, height_ratios=[2, 4])
    for axes, kind in zip(panels, (MEASURED, EMULATED), strict=True):
        own = [row for row in rows if row["kind"] == kind]
        _draw_events(axes, own)
        axes.set_title(f"{kind}: D = {own[0]['stages']}; numbers are samples")
    panels[-1].set_xlabel("milliseconds")


def _draw_events(axes: "Axes", rows: list[dict[str, str]]) -> None:
    from actionspan.files.figures import COLOURS

    colours = dict(zip(("forward", "backward", "update"), COLOURS, strict=False))
    last = 0.55 * max(float(row["end_ms"]) for row in rows)  # enough steps to read their numbers
    for row in rows:
        begin, end = float(row["begin_ms"]), float(row["end_ms"])
        if begin > last:
            continue
        place = int(row["stage"])
        axes.barh(place, end - begin, 0.75, begin, color=colours[row["work"]], linewidth=0)
        if end - begin > last / 60:
            middle = (begin + end) / 2
            axes.annotate(
                row["sample"], (middle, place), ha="center", va="center", color="w", fontsize=7
            )
    stages = sorted({int(row["stage"]) for row in rows})
    axes.set_yticks(stages, [f"stage {stage}" for stage in stages])
    axes.invert_yaxis()
    axes.grid(visible=False)
    for work, colour in colours.items():
        axes.plot([], [], "s", color=colour, label=work)
    axes.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
