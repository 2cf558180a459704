"""Draw which stage works on which sample when, as in figures 1 and 2 of paper 002."""

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any

from actionspan_papers.experiments import Experiment, Row, Table, where
from actionspan_papers.kinds import Axes, DataFrame, Figure, Tensor
from actionspan_papers.partime.published import PLAIN
from actionspan_papers.partime.settings import EMULATED, MEASURED, SpeedSettings

_SAMPLES = 14
_WAIT = 0.03  # seconds of a stage that waits


def _rows(_: object, settings: SpeedSettings) -> list[Row]:
    """Return a row an event."""
    import torch

    from actionspan.networks.division import division
    from actionspan.streaming.balance import balance_stages
    from actionspan_papers.partime.networks import Case, Wait

    case = Case(PLAIN, settings.sides[-1], settings.outputs[0])
    network, sample = case.network(settings), case.sample()
    stages = balance_stages(network, sample, 2, learning=True, divide=division, repetitions=3)
    waits, value = [Wait(_WAIT, learning=True) for _ in range(4)], torch.zeros(1, 4)
    measured = _events(MEASURED, stages, sample, case.target(network))
    return measured + _events(EMULATED, waits, value, value)


def _events(kind: str, stages: Sequence[Any], sample: Tensor, target: Tensor) -> list[Row]:
    from actionspan.streaming.pipeline import Pipeline
    from actionspan_papers.partime.pipelines import LEARN

    with Pipeline(stages, "thread", record=True, **LEARN) as pipeline:
        list(pipeline.run(repeat((sample, target), _SAMPLES)))
        reports = pipeline.report()
    first = min(event.begin for report in reports for event in report["events"])
    return [
        {
            "kind": kind,
            "stages": len(reports),
            "stage": stage,
            "step": event.step,
            "sample": event.sample,
            "work": event.work,
            "begin_ms": 1000 * (event.begin - first),
            "end_ms": 1000 * (event.end - first),
        }
        for stage, report in enumerate(reports, start=1)
        for event in report["events"]
    ]


def _table(rows: DataFrame, *_: object) -> Table:
    caption = [
        "Events of pipelines that learn, from the clocks of their threads; the TSV has every one. "
        "Measured: two stages of the plain convolutions. Emulated: four stages that wait.",
        "Delay: steps from the forward pass of a sample in a stage to the backward pass of its "
        "loss's gradient there; the paper's is 2(D − h) for stage h.",
    ]
    titles = {"kind": "kind", "stages": "D", "stage": "stage h"}
    titles |= {"delay": "delay, steps", "published": "2(D − h)", "first": "first learned at step"}
    shown: list[Row] = [
        {
            "kind": kind,
            "stages": stages,
            "stage": stage,
            "delay": ", ".join(map(str, sorted(set(delays(events))))),
            "published": 2 * (stages - stage),
            "first": where(events, work="backward")["step"].min(),
        }
        for kind, stages, stage, events in by_stage(rows)
    ]
    return Table(caption=caption, titles=titles, rows=shown, align="lrrrrr")


def by_stage(rows: DataFrame) -> Iterator[tuple[str, int, int, DataFrame]]:
    """Yield the kind of a pipeline, its number of stages, a stage of it, and its events."""
    for (kind, stages, stage), events in rows.groupby(["kind", "stages", "stage"], sort=False):
        yield kind, stages, stage, events


def delays(events: DataFrame) -> list[int]:
    """Return the delay of every gradient of a sample that reached the stage with these events."""
    began, learned = (
        where(events, work=work).set_index("sample")["step"] for work in ("forward", "backward")
    )
    found: list[int] = (learned - began).reindex(learned.index).dropna().astype(int).tolist()
    return found


def _draw(figure: Figure, rows: DataFrame, *_: object) -> None:
    panels = figure.subplots(2, 1, height_ratios=[2, 4])
    for axes, kind in zip(panels, (MEASURED, EMULATED), strict=True):
        own = where(rows, kind=kind)
        # enough steps to read their numbers
        draw_events(axes, own, 0.55 * own["end_ms"].max())
        axes.set_title(f"{kind}: D = {own['stages'].iloc[0]}; numbers are samples")
    panels[-1].set_xlabel("milliseconds")


def draw_events(axes: Axes, events: DataFrame, last: float) -> None:
    """Draw what stages do and the samples they do it with, up to a `last` beginning."""
    from actionspan.storage.figures import COLOURS

    colours = dict(zip(("forward", "backward", "update"), COLOURS, strict=False))
    look: dict[str, Any] = {"ha": "center", "va": "center", "color": "w", "fontsize": 7}
    for event in events[events["begin_ms"] <= last].itertuples():
        begin, length = event.begin_ms, event.end_ms - event.begin_ms
        axes.barh(event.stage, length, 0.75, begin, color=colours[event.work], linewidth=0)
        if length > last / 60:
            place = (begin + event.end_ms) / 2, event.stage
            axes.annotate(str(event.sample), place, **look)
    stages = sorted(events["stage"].unique())
    axes.set_yticks(stages, [f"stage {stage}" for stage in stages])
    axes.invert_yaxis()
    axes.grid(visible=False)
    for work in events["work"].unique():
        axes.plot([], [], "s", color=colours[work], label=work)
    axes.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))


EXPERIMENT = Experiment(
    rows=_rows,
    table=_table,
    figure=_draw,
    size=(8.4, 3.6),
    settings=(SpeedSettings,),
    repeatable=True,
    forms=dict.fromkeys(["begin_ms", "end_ms"], ".3f"),
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
