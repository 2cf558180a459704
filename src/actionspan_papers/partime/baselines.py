"""Compute what GPipe, PipeDream, PipeDream-2BW and PARTIME give and need, as in figure 1."""

import argparse
from fractions import Fraction
from typing import TYPE_CHECKING

from actionspan.settings import add_settings, from_arguments
from actionspan_papers.partime.schedules import BATCHED, SCHEDULES, measures, timetable
from actionspan_papers.partime.settings import SpeedSettings
from actionspan_papers.partime.timeline_report import draw_events
from actionspan_papers.tables import add_outputs, write_figures, write_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DRAWN = 4
"""Stages, and samples of a batch, in the figure."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_outputs(parser, figure=True)
    add_settings(parser, SpeedSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write a row a number of stages, schedule and size of a batch, and the figure."""
    settings = from_arguments(SpeedSettings, arguments)
    caption = [
        "Timetables of D stages that take equally long, computed exactly: a forward pass takes one "
        "unit of time and a backward pass two, messages take none. Nothing is measured: what the "
        "schedules do to learning is not in this table, nor is GPipe's recomputation.",
        "M: micro-batches of an update; PipeDream and PARTIME update at each sample. Idle: share "
        "of a full pipeline's time. Speed-up: over one device. Latency: the longest from arrival "
        "to answer, in steps (a forward and a backward pass), of samples that arrive evenly as "
        "fast as they are taken. By stage: weights that are kept; samples of which activations "
        "are kept; updates between a sample's forward pass and its gradient; how many samples "
        "later the one is through which the gradient goes.",
    ]
    rows = baseline_rows(settings)
    titles = {name: name.replace("_", " ") for name in rows[0]}
    titles |= {"stages": "D", "batch": "M", "speedup": "speed-up", "latency": "latency, steps"}
    write_table(arguments, rows, caption, "rlrrrr" + 4 * "l", titles)
    write_figures(arguments, _draw, (8.4, 5.0))


def baseline_rows(settings: SpeedSettings) -> list[dict[str, str]]:
    """Return the rows; batches are as long as the pipeline, and four times as long."""
    rows = []
    for depth in settings.depths:
        for schedule in SCHEDULES:
            for batch in (depth, 4 * depth) if schedule in BATCHED else (1,):
                idle, speedup, latency, *kept = measures(schedule, depth, batch)
                by_stage = zip(
                    ("versions", "activations", "delay", "other_input"), kept, strict=True
                )
                rows.append(
                    {
                        "stages": str(depth),
                        "schedule": schedule,
                        "batch": str(batch),
                        "idle": f"{float(idle):.4f}",
                        "speedup": f"{float(speedup):.4f}",
                        "latency": f"{float(latency):.4f}",
                        **{name: " ".join(map(str, each)) for name, each in by_stage},
                    }
                )
    return rows


def _written(value: Fraction | tuple[int, ...]) -> str:
    return f"{float(value):.4f}" if isinstance(value, Fraction) else " ".join(map(str, value))


def _draw(figure: "Figure") -> None:
    # PipeDream's passes are those of PipeDream-2BW
    drawn = [schedule for schedule in SCHEDULES if schedule != "PipeDream"]
    for axes, schedule in zip(figure.subplots(3, 1, sharex=True), drawn, strict=True):
        events = [
            {"begin_ms": work.begin, "end_ms": work.end, **work._asdict()}
            for work in timetable(schedule, _DRAWN, _DRAWN, 5 * _DRAWN)
        ]
        draw_events(axes, [{k: str(v) for k, v in event.items()} for event in events], 52.5)
        size = f", M = {_DRAWN}" if schedule in BATCHED else ""
        axes.set_title(f"{schedule}: D = {_DRAWN}{size}; numbers are samples")
    axes.set_xlabel("units of time: forward 1, backward 2")
