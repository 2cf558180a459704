"""Draw which stage works on which sample when, as in figures 1 and 2 of paper 002."""

import argparse
from typing import TYPE_CHECKING

from actionspan.settings import add_settings, from_arguments
from actionspan_papers.partime.settings import SpeedSettings
from actionspan_papers.tables import add_outputs, write_figures, write_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_outputs(parser, figure=True)
    add_settings(parser, SpeedSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write a row an event of stages that learn, and the figure."""
    settings = from_arguments(SpeedSettings, arguments)
    from actionspan_papers.partime.speed_rows import timeline_rows

    rows = timeline_rows(settings)
    caption = [
        "Events of pipelines that learn, from the clocks of their threads; the TSV has every one. "
        "Measured: two stages of the plain convolutions. Emulated: four stages that wait.",
        "Delay: steps from the forward pass of a sample in a stage to the backward pass of its "
        "loss's gradient there; the paper's is 2(D − h) for stage h.",
    ]
    titles = {"kind": "kind", "stages": "D", "stage": "stage h"}
    titles |= {"delay": "delay, steps", "published": "2(D − h)", "first": "first learned at step"}
    write_table(arguments, rows, caption, "lrrrrr", titles, shown_rows(rows))
    write_figures(arguments, lambda figure: draw(figure, rows), (8.4, 3.6))


MEASURED, EMULATED = "measured", "emulated"


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


def draw(figure: "Figure", rows: list[dict[str, str]]) -> None:
    """Draw the events of both kinds."""
    panels = figure.subplots(2, 1, height_ratios=[2, 4])
    for axes, kind in zip(panels, (MEASURED, EMULATED), strict=True):
        own = [row for row in rows if row["kind"] == kind]
        # enough steps to read their numbers
        draw_events(axes, own, 0.55 * max(float(row["end_ms"]) for row in own))
        axes.set_title(f"{kind}: D = {own[0]['stages']}; numbers are samples")
    panels[-1].set_xlabel("milliseconds")


def draw_events(axes: "Axes", rows: list[dict[str, str]], last: float) -> None:
    """Draw what stages do and the samples they do it with, up to a `last` beginning."""
    from actionspan.files.figures import COLOURS

    colours = dict(zip(("forward", "backward", "update"), COLOURS, strict=False))
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
    for work in dict.fromkeys(row["work"] for row in rows):
        axes.plot([], [], "s", color=colours[work], label=work)
    axes.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
