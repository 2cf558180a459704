"""Compute what GPipe, PipeDream, PipeDream-2BW and PARTIME give and need, as in figure 1."""

from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Literal, NamedTuple, get_args

from actionspan_papers.experiments import Cell, Experiment, Row, Table
from actionspan_papers.kinds import DataFrame, Figure
from actionspan_papers.partime.settings import SpeedSettings
from actionspan_papers.partime.timeline import draw_events

_DRAWN = 4
"""Stages, and samples of a batch, in the figure."""

_Schedule = Literal["GPipe", "PipeDream", "PipeDream-2BW", "PARTIME"]
SCHEDULES: tuple[_Schedule, ...] = get_args(_Schedule)
_BATCHED: tuple[_Schedule, ...] = ("GPipe", "PipeDream-2BW")
"""Those that update weights once for a batch of samples; the others do for each."""
_KINDS = _FORWARD, _BACKWARD = "forward", "backward"
_UNITS = {_FORWARD: 1, _BACKWARD: 2}
_STEP = sum(_UNITS.values())


class Work(NamedTuple):
    """A pass in stage h, from 1; a backward one is of the loss of `sample`, from 0."""

    begin: int
    stage: int
    work: str
    sample: int
    through: int
    """The sample of the forward pass that a backward one goes through: PARTIME's is another."""

    @property
    def end(self) -> int:
        """Return when it is over."""
        return self.begin + _UNITS[self.work]


class _Measures(NamedTuple):
    """The output and cost of a schedule once the pipeline is full; tuples are by stage.

    `idle` is the share of time that a stage waits, `speedup` is over one device. `latency` is the
    longest time from arrival to answer, in steps of a forward and a backward pass, of samples that
    arrive evenly as fast as they are taken. `versions` of weights and `activations` of samples are
    the most that are kept at one time; `delay` is the number of updates between the forward pass of
    a sample and its gradient; `other_input`, how many samples later the one is that a gradient
    goes through.
    """

    idle: Fraction
    speedup: Fraction
    latency: Fraction
    versions: tuple[int, ...]
    activations: tuple[int, ...]
    delay: tuple[int, ...]
    other_input: tuple[int, ...]


def timetable(schedule: _Schedule, stages: int, batch: int, samples: int) -> list[Work]:
    """Return the passes of all stages, each as early as the schedule has it.

    Args:
        schedule: Which; PipeDream and PARTIME take no batches.
        stages: D.
        batch: M, samples of an update.
        samples: That enter, a multiple of the batch.
    """
    if schedule == "PARTIME":
        return _lock_step(stages, samples)
    queues = [deque(_order(schedule, stages - h, batch, samples)) for h in range(stages)]
    ended = {(_FORWARD, 0, sample): 0 for sample in range(samples)}
    free, works = [0] * (stages + 1), []
    while any(queues):
        for stage, queue in enumerate(queues, start=1):
            while queue:
                work, sample = queue[0]
                before = stage - 1 if work == _FORWARD else stage + 1
                needed = (work, before, sample) if before <= stages else (_FORWARD, stages, sample)
                if needed not in ended:
                    break
                works.append(Work(max(free[stage], ended[needed]), stage, work, sample, sample))
                free[stage] = ended[work, stage, sample] = works[-1].end
                queue.popleft()
    return works


def _order(schedule: _Schedule, depth: int, batch: int, samples: int) -> list[tuple[str, int]]:
    """Return the passes of a stage that has `depth` stages from itself to the last."""
    if schedule == "GPipe":
        starts = range(0, samples, batch)
        return [(work, i + k) for i in starts for work in _KINDS for k in range(batch)]
    # each backward pass makes room for one more sample to enter
    passes = [[(_FORWARD, i + depth - 1), (_BACKWARD, i)] for i in range(1 - depth, samples)]
    return [(work, i) for pair in passes for work, i in pair if 0 <= i < samples]


def _lock_step(stages: int, samples: int) -> list[Work]:
    works = []
    for step in range(samples + stages - 1):
        for stage in range(1, stages + 1):
            own, lost = step - stage + 1, step + stage - 2 * stages + 1
            if 0 <= own < samples:
                works.append(Work(_STEP * step, stage, _FORWARD, own, own))
                if lost >= 0:
                    works.append(Work(_STEP * step + 1, stage, _BACKWARD, lost, own))
    return works


def measures(schedule: _Schedule, stages: int, batch: int) -> _Measures:
    """Return the output and cost of a schedule; the arguments are as in `timetable`."""
    batches = 4 + 4 * -(-stages // batch)
    works = timetable(schedule, stages, batch, batch * batches)
    forward = {(each.stage, each.sample): each for each in works if each.work == _FORWARD}
    first = batch * (batches // 2)  # far from filling and from draining
    period = forward[1, first + batch].begin - forward[1, first].begin
    idle, apart = 1 - Fraction(batch * _STEP, period), Fraction(period, batch)
    middle = range(first, first + batch)
    arrival = min(forward[1, i].begin - i * apart for i in middle)
    latency = max(forward[stages, i].end - i * apart for i in middle) - arrival
    kept = [_kept(schedule, stage, batch, works, forward) for stage in range(1, stages + 1)]
    return _Measures(idle, stages * (1 - idle), latency / _STEP, *zip(*kept, strict=True))


def _kept(
    schedule: _Schedule,
    stage: int,
    batch: int,
    works: Sequence[Work],
    forward: Mapping[tuple[int, int], Work],
) -> tuple[int, int, int, int]:
    """Return versions, activations, delay and the distance of the inputs in a stage."""
    size = batch if schedule in _BATCHED else 1
    own = [each for each in works if each.stage == stage]
    losses = [each for each in own if each.work == _BACKWARD]
    ends = {
        h: sorted(e.end for e in works if (e.stage, e.work) == (h, _BACKWARD)) for h in (1, stage)
    }

    def newest(time: int, at: int = stage) -> int:
        return bisect_right(ends[at], time) // size

    def used(sample: int) -> int:
        if schedule == "PipeDream-2BW":  # one for all stages: the newest as the batch entered
            return newest(forward[1, sample - sample % batch].begin, 1)
        return newest(forward[stage, sample].begin)

    released = {each.through: each.end for each in own}  # by the last pass through a sample
    versions = samples = 0
    for now in (each.begin for each in own):
        held = [i for i, end in released.items() if forward[stage, i].begin <= now < end]
        samples = max(samples, len(held))
        versions = max(versions, len({newest(now), *map(used, held)}))
    delay = max(newest(each.begin) - used(each.sample) for each in losses)
    return versions, samples, delay, max(each.through - each.sample for each in losses)


def baseline_rows(settings: SpeedSettings) -> list[Row]:
    """Return a row a number of stages, schedule and size of a batch.

    Batches are as long as the pipeline, and four times as long.
    """
    rows: list[Row] = []
    for depth, schedule in product(settings.depths, SCHEDULES):
        for batch in (depth, 4 * depth) if schedule in _BATCHED else (1,):
            row: dict[str, Cell] = {"stages": depth, "schedule": schedule, "batch": batch}
            for name, value in measures(schedule, depth, batch)._asdict().items():
                by_stage = isinstance(value, tuple)
                row[name] = " ".join(map(str, value)) if by_stage else float(value)
            rows.append(row)
    return rows


def _table(rows: DataFrame, *_: object) -> Table:
    caption = [
        "Timetables of D stages that take equally long, computed exactly: a forward pass takes one "
        "unit of time and a backward pass two, messages take none. Nothing is measured: the effect "
        "of schedules on learning is not in this table, nor is GPipe's recomputation.",
        "M: micro-batches of an update; PipeDream and PARTIME update at each sample. Idle: share "
        "of a full pipeline's time. Speed-up: over one device. Latency: the longest from arrival "
        "to answer, in steps (a forward and a backward pass), of samples that arrive evenly as "
        "fast as they are taken. By stage: weights that are kept; samples of which activations "
        "are kept; updates between a sample's forward pass and its gradient; how many samples "
        "later the one is through which the gradient goes.",
    ]
    titles = {name: name.replace("_", " ") for name in rows}
    titles |= {"stages": "D", "batch": "M", "speedup": "speed-up", "latency": "latency, steps"}
    return Table(caption=caption, titles=titles)


def _draw(figure: Figure, *_: object) -> None:
    import pandas as pd

    # PipeDream's passes are PipeDream-2BW's
    drawn = [schedule for schedule in SCHEDULES if schedule != "PipeDream"]
    for axes, schedule in zip(figure.subplots(3, 1, sharex=True), drawn, strict=True):
        works = timetable(schedule, _DRAWN, _DRAWN, 5 * _DRAWN)
        events = [{"begin_ms": work.begin, "end_ms": work.end, **work._asdict()} for work in works]
        draw_events(axes, pd.DataFrame(events), 52.5)
        size = f", M = {_DRAWN}" if schedule in _BATCHED else ""
        axes.set_title(f"{schedule}: D = {_DRAWN}{size}; numbers are samples")
    axes.set_xlabel("units of time: forward 1, backward 2")


EXPERIMENT = Experiment(
    rows=lambda _, settings: baseline_rows(settings),
    table=_table,
    figure=_draw,
    size=(8.4, 5.0),
    settings=(SpeedSettings,),
    forms=dict.fromkeys(["idle", "speedup", "latency"], ".4f"),
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
