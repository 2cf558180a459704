"""Time a loop against a pipeline in interleaved pairs, and pipelines of timed waits."""

import copy
import math
import os
import time
from collections.abc import Sequence
from itertools import repeat

import torch
from torch import Tensor, nn

from actionspan.jobs.determinism import deterministic
from actionspan.networks.division import division
from actionspan.streaming.balance import balance_stages
from actionspan.streaming.pipeline import Pipeline
from actionspan_papers.experiments import Row
from actionspan_papers.partime.balance_rows import WORKS, balanced
from actionspan_papers.partime.networks import LEARN, Case, cases, sgd, squared
from actionspan_papers.partime.published import KINDS, PLAIN, printed_range
from actionspan_papers.partime.settings import EMULATED, EXECUTORS, MEASURED, SpeedSettings

_FEWEST, _MOST = 6, 400  # samples of a measurement
_MEASURED_STAGES = 2  # the stages that have a core each where there are two
_SAMPLES = 14
_WAIT = 0.03  # seconds of a stage that waits


def measure(
    network: nn.Module,
    stages: Sequence[nn.Module],
    sample: Tensor,
    target: Tensor | None,
    *,
    executor: str,
    pairs: int,
    samples: int,
) -> tuple[list[float], float]:
    """Return how much faster than a plain loop a pipeline is in its steady state, pair by pair.

    The stages are those of `network`; the loop has a copy. Which of both comes first alternates.
    Both learn where there is a target. The second value is the load of the machine around the
    pairs. Call it with torch on one thread.
    """
    learning = target is not None
    alone = copy.deepcopy(network).train(learning)
    for stage in stages:
        stage.train(learning)
    optimiser = sgd(alone.parameters()) if learning else None
    speedups = []
    begun = os.getloadavg()[0]
    with Pipeline(stages, executor, **(LEARN if learning else {})) as pipeline:
        _steady(pipeline, sample, target, _FEWEST)
        _loop(alone, optimiser, sample, target, 2)
        for pair in range(pairs):
            if pair % 2:
                piped = _steady(pipeline, sample, target, samples)
            looped = _loop(alone, optimiser, sample, target, samples)
            if not pair % 2:
                piped = _steady(pipeline, sample, target, samples)
            speedups.append(looped / piped)
    return speedups, max(begun, os.getloadavg()[0])


def samples_for(seconds: float, sample_seconds: float) -> int:
    """Return how many samples take about `seconds`."""
    return max(_FEWEST, min(_MOST, round(seconds / max(sample_seconds, 1e-9))))


def _loop(
    network: nn.Module,
    optimiser: torch.optim.Optimizer | None,
    sample: Tensor,
    target: Tensor | None,
    samples: int,
) -> float:
    """Return the seconds a sample of a plain loop."""
    begun = time.perf_counter()
    for _ in range(samples):
        with torch.set_grad_enabled(optimiser is not None):
            output = network(sample)
            if optimiser is not None and target is not None:
                torch.autograd.backward((squared(output, target),))
                optimiser.step()
                optimiser.zero_grad(set_to_none=True)
    return (time.perf_counter() - begun) / samples


def _steady(pipeline: Pipeline, sample: Tensor, target: Tensor | None, samples: int) -> float:
    """Return the seconds from answer to answer, between filling and draining."""
    margin = 2 * len(pipeline.report()) + 2
    given = sample if target is None else (sample, target)
    answers = pipeline.run(repeat(given, samples + 2 * margin))
    times = [time.perf_counter() for _ in answers]
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
        time.sleep(self.seconds / 3)
        out = value + self.weight
        if out.requires_grad:
            out.register_hook(self._wait_backward)  # type: ignore[no-untyped-call]
        return out

    def _wait_backward(self, _: Tensor) -> None:
        time.sleep(2 * self.seconds / 3)


def emulate(
    seconds: Sequence[float], loop_seconds: float, *, learning: bool, samples: int
) -> float:
    """Return the speed-up over a loop of stages that wait as long as the real ones compute.

    It shows what filling, hand-over and the slowest stage leave of D; the cores do nothing.
    """
    value = torch.zeros(1, 16)
    stages = [Wait(own, learning=learning) for own in seconds]
    with Pipeline(stages, "thread", **(LEARN if learning else {})) as pipeline:
        return loop_seconds / _steady(pipeline, value, value if learning else None, samples)


def speedup_rows(settings: SpeedSettings, cores: int) -> list[Row]:
    """Return a row a network, work, number of stages and pair."""
    with deterministic(threads=1):
        return [
            row
            for case in cases(settings)
            for work in WORKS
            for row in _of_work(case, work, settings, cores)
        ]


def _of_work(case: Case, work: str, settings: SpeedSettings, cores: int) -> list[Row]:
    network, sample, learning = case.network(settings), case.sample(), WORKS[work]
    target = case.target(network) if learning else None
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
        how = {"pairs": settings.pairs, "samples": count}
        for executor in EXECUTORS:
            speedups, load = measure(network, stages, sample, target, executor=executor, **how)
            rows += [
                {**common, "executor": executor, "pair": pair, "measured": speedup, "load": load}
                for pair, speedup in enumerate(speedups, start=1)
            ]
    return rows


def timeline_rows(settings: SpeedSettings) -> list[Row]:
    """Return a row an event."""
    with deterministic(threads=1):
        case = Case(PLAIN, settings.sides[-1], settings.outputs[0])
        network, sample = case.network(settings), case.sample()
        stages = balance_stages(network, sample, 2, learning=True, divide=division, repetitions=3)
        waits, value = [Wait(_WAIT, learning=True) for _ in range(4)], torch.zeros(1, 4)
        measured = _events(MEASURED, stages, sample, case.target(network))
        return measured + _events(EMULATED, waits, value, value)


def _events(kind: str, stages: Sequence[nn.Module], sample: Tensor, target: Tensor) -> list[Row]:
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
