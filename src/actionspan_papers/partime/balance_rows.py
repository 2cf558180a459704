"""Stages of balanced networks, by measured time and by counted multiplications."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from actionspan.jobs.determinism import deterministic
from actionspan.networks.division import division
from actionspan.streaming.balance import Balanced, Costs, balance_stages, layers_of, partition
from actionspan.streaming.messages import Value
from actionspan_papers.experiments import Row
from actionspan_papers.partime.networks import Case, counted_cases, even_cuts
from actionspan_papers.partime.settings import SpeedSettings

WORKS = {"inference": False, "learning": True}
"""What is done, and whether it learns."""


def balanced(
    network: nn.Module, sample: Tensor, depths: Sequence[int], *, learning: bool
) -> Iterator[tuple[int, Balanced]]:
    """Yield a network in each number of stages; its layers are measured once."""
    costs = None
    for depth in depths:
        stages = balance_stages(
            network, sample, depth, learning=learning, divide=division, costs=costs, repetitions=5
        )
        costs = stages.costs
        yield depth, stages


def counted_costs(layers: Sequence[nn.Module], sample: Value) -> Costs:
    """Return as costs the multiplications of each of a chain of layers; messages cost nothing.

    Those of convolutions and classifiers are counted, not timed: the same on every machine.
    """
    counted, value = [], sample
    for layer in layers:
        was = layer.training
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            value = layer.eval()(value)
        layer.train(was)
        counted.append(counter.get_total_flops() / 2)  # a multiplication and an addition
    return Costs(seconds=tuple(counted), message_bytes=(0,) * (len(counted) + 1))


def stages_by_counting(layers: Sequence[nn.Module], sample: Value, stages: int) -> Balanced:
    """Return layers in the stages that counting balances best."""
    costs = counted_costs(layers, sample)
    return Balanced(layers, costs, partition(costs, stages))


def balance_rows(settings: SpeedSettings) -> list[Row]:
    """Return a row a network, work and number of stages."""
    with deterministic(threads=1):
        return [
            row
            for case in counted_cases(settings)
            for work in WORKS
            for row in _of_work(case, work, settings)
        ]


def _of_work(case: Case, work: str, settings: SpeedSettings) -> list[Row]:
    network, sample = case.network(settings), case.sample()
    layers = layers_of(network, division)
    counted = counted_costs(layers, sample)
    rows: list[Row] = []
    for depth, stages in balanced(network, sample, settings.depths, learning=WORKS[work]):
        best, even = partition(counted, depth), even_cuts(len(layers), depth)
        row: Row = {
            **case.named,
            "work": work,
            "stages": depth,
            "layers": len(layers),
            "cuts": " + ".join(str(b - a) for a, b in pairwise(stages.cuts)),
            "stage_ms": " | ".join(f"{1000 * s:.2f}" for s in stages.seconds),
            "bound": stages.bound,
            "bound_by_operations": Balanced(layers, counted, best).bound,
            "even_bound": Balanced(layers, counted, even).bound,
        }
        rows.append(row)
    return rows
