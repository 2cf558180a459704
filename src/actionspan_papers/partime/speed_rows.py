"""Time a loop against a pipeline in interleaved pairs; and pipelines of timed waits."""

import copy
import math
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from actionspan.running.determinism import deterministic
from actionspan.streaming.balance import balance_stages, layers_of
from actionspan.streaming.messages import Value
from actionspan.streaming.pipeline import Pipeline
from actionspan_papers.experiments import Row
from actionspan_papers.partime.networks import (
    Case,
    bound_of,
    cases,
    counted_cases,
    counted_cuts,
    inside,
    operations,
    squared,
    works,
)
from actionspan_papers.partime.published import KINDS, printed_range
from actionspan_papers.partime.settings import SpeedSettings

_RATE = 1e-4
_FEWEST, _MOST = 6, 400  # samples of a measurement


def sgd(parameters: "Iterator[nn.Parameter] | list[nn.Parameter]") -> torch.optim.Optimizer:
    """Return the optimiser of all networks whose speed is measured."""
    return torch.optim.SGD(parameters, lr=_RATE)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Speed-ups of the pairs, seconds a sample of loop and pipeline, and the load around them."""

    speedups: tuple[float, ...]
    loop_seconds: float
    pipeline_seconds: float
    load: float


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
) -> Measured:
    """Return how much faster a pipeline is than a plain loop, in its steady state.

    The stages are those of `network`; the loop has a copy. Which of both comes first alternates.
    """
    alone = copy.deepcopy(network).train(learning)
    for stage in stages:
        stage.train(learning)
    optimiser = sgd(alone.parameters()) if learning else None
    how: dict[str, Any] = {"loss": squared, "optimiser": sgd} if learning else {}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    ratios, loops, piped = [], [], []
    begun = os.getloadavg()[0]
    try:
        with Pipeline(stages, executor, **how) as pipeline:
            _steady(pipeline, sample, target, _FEWEST, learning=learning)
            _loop(alone, optimiser, sample, target, 2)
            for pair in range(pairs):
                if pair % 2:
                    piped.append(_steady(pipeline, sample, target, samples, learning=learning))
                loops.append(_loop(alone, optimiser, sample, target, samples))
                if not pair % 2:
                    piped.append(_steady(pipeline, sample, target, samples, learning=learning))
                ratios.append(loops[-1] / piped[-1])
    finally:
        torch.set_num_threads(threads)
    load = max(begun, os.getloadavg()[0])
    return Measured(
        speedups=tuple(ratios),
        loop_seconds=median(loops),
        pipeline_seconds=median(piped),
        load=load,
    )


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
    begun = ended = 0.0
    for place, _ in enumerate(pipeline.run(given)):
        if place == margin - 1:
            begun = time.perf_counter()
        elif place == margin + samples - 1:
            ended = time.perf_counter()
    return (ended - begun) / samples


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
    def forward(ctx: torch.autograd.function.FunctionCtx, *inputs: object) -> Tensor:
        value, weight, seconds = inputs
        assert isinstance(value, Tensor)
        assert isinstance(weight, Tensor)
        assert isinstance(seconds, float)
        ctx.seconds = seconds  # type: ignore[attr-defined]
        time.sleep(seconds / 3)
        return value + weight

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *gradients: Tensor) -> object:
        time.sleep(2 * ctx.seconds / 3)  # type: ignore[attr-defined]
        return gradients[0], gradients[0].sum(), None


def emulate(
    seconds: Sequence[float], loop_seconds: float, *, learning: bool, samples: int
) -> float:
    """Return the speed-up over a loop of stages that wait as long as the real ones compute.

    It shows what filling, hand-over and the slowest stage leave of D; the cores do nothing.
    """
    value = torch.zeros(1, 16)
    how: dict[str, Any] = {"loss": _half_square, "optimiser": sgd} if learning else {}
    stages = [Wait(own, learning=learning) for own in seconds]
    with Pipeline(stages, "thread", **how) as pipeline:
        spent = _steady(pipeline, value, value, samples, learning=learning)
    return loop_seconds / spent


def _half_square(output: Value, target: Value) -> Tensor:
    assert isinstance(output, Tensor)
    assert isinstance(target, Tensor)
    return ((output - target) ** 2).sum() / 2


EXECUTORS = ("thread", "process")
_MEASURED_STAGES = 2  # the stages that have a core each where there are two


def speedup_rows(settings: SpeedSettings, cores: int) -> list[Row]:
    """Return a row a network, work, number of stages and pair."""
    rows: list[Row] = []
    with deterministic(threads=1):
        for case in cases(settings):
            for work, learning in works():
                rows += _rows(case, work, settings, cores, learning=learning)
    return rows


def _rows(
    case: Case, work: str, settings: SpeedSettings, cores: int, *, learning: bool
) -> list[Row]:
    network = case.network(settings)
    sample, target = case.sample(), case.target(network)
    found: list[Row] = []
    costs = None
    for depth in settings.depths:
        stages = balance_stages(
            network, sample, depth, learning=learning, divide=inside, costs=costs, repetitions=5
        )
        costs = stages.costs
        total = sum(costs.seconds)
        count = samples_for(settings.measured_seconds, total)
        emulated = emulate(stages.seconds, total, learning=learning, samples=count)
        common = {
            **case.named,
            "work": work,
            "stages": depth,
            "bound": stages.bound,
            "emulated": emulated,
            "slowest_stage_ms": 1000 * max(stages.seconds),
            "loop_cpu_ms": 1000 * total,
            "published_graph": _printed(case, work, depth, graph=True),
            "published_eager": _printed(case, work, depth, graph=False),
        }
        if depth != _MEASURED_STAGES or cores < depth:
            unknown = {"measured": math.nan, "load": math.nan}
            found.append({**common, "executor": "", "pair": "", **unknown})
            continue
        for executor in EXECUTORS:
            measured = measure(
                network,
                stages,
                sample,
                target,
                learning=learning,
                executor=executor,
                pairs=settings.pairs,
                samples=count,
            )
            found += [
                {
                    **common,
                    "executor": executor,
                    "pair": pair + 1,
                    "measured": speedup,
                    "load": measured.load,
                }
                for pair, speedup in enumerate(measured.speedups)
            ]
    return found


def _printed(case: Case, work: str, stages: int, *, graph: bool) -> str:
    """Return the speed-ups that the paper prints of its like; table II does not say of which work.

    Its text compares it with inference.
    """
    name = "learning" if work == "learning" else "inference"
    return printed_range(KINDS[case.name], name, stages, graph=graph)  # type: ignore[arg-type]


def balance_rows(settings: SpeedSettings) -> list[Row]:
    """Return a row a network, work and number of stages."""
    rows: list[Row] = []
    with deterministic(threads=1):
        for case in counted_cases(settings):
            network, sample = case.network(settings), case.sample()
            layers = layers_of(network, inside)
            counted = operations(layers, sample)
            for work, learning in works():
                costs = None
                for depth in settings.depths:
                    stages = balance_stages(
                        network,
                        sample,
                        depth,
                        learning=learning,
                        divide=inside,
                        costs=costs,
                        repetitions=5,
                    )
                    costs = stages.costs
                    parts = [b - a for a, b in zip(stages.cuts, stages.cuts[1:], strict=False)]
                    rows.append(
                        {
                            **case.named,
                            "work": work,
                            "stages": depth,
                            "layers": len(layers),
                            "cuts": " + ".join(map(str, parts)),
                            "stage_ms": " | ".join(f"{1000 * s:.2f}" for s in stages.seconds),
                            "bound": stages.bound,
                            "bound_by_operations": bound_of(counted, counted_cuts(counted, depth)),
                            "even_bound": bound_of(counted, even_cuts(len(counted), depth)),
                        }
                    )
    return rows


def even_cuts(layers: int, stages: int) -> list[int]:
    """Return the cuts where each stage has about as many layers, whatever they cost."""
    return [round(stage * layers / stages) for stage in range(stages + 1)]
