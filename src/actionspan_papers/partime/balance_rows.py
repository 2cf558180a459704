"""Stages of balanced networks, by measured time and by counted multiplications."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from actionspan.networks.division import division
from actionspan.running.determinism import deterministic
from actionspan.streaming.balance import Balanced, Costs, balance_stages, layers_of, partition
from actionspan.streaming.messages import Value
from actionspan_papers.experiments import Row
from actionspan_papers.partime.networks import counted_cases
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


def operations(layers: Sequence[nn.Module], sample: Value) -> list[int]:
    """Return the multiplications of each of a chain of layers, of its convolutions and classifiers.

    They are counted, not timed: the same on every machine.
    """
    counted, value = [0] * len(layers), sample
    with torch.no_grad():
        for place, layer in enumerate(layers):

            def count(part: nn.Module, _: object, out: Tensor, place: int = place) -> None:
                if isinstance(part, nn.Conv2d):
                    counted[place] += out.numel() * part.weight[0].numel()
                elif isinstance(part, nn.Linear):
                    counted[place] += out.numel() * part.in_features

            handles = [part.register_forward_hook(count) for part in layer.modules()]
            was = layer.training
            value = layer.eval()(value)
            layer.train(was)
            for handle in handles:
                handle.remove()
    return counted


def counted_cuts(counted: Sequence[int], stages: int) -> list[int]:
    """Return the cuts of the best partition by counted multiplications."""
    seconds = tuple(map(float, counted))
    return partition(Costs(seconds=seconds, message_bytes=(0,) * (len(counted) + 1)), stages)


def even_cuts(layers: int, stages: int) -> list[int]:
    """Return the cuts into stages of similar length, whatever the layers cost."""
    return [round(stage * layers / stages) for stage in range(stages + 1)]


def bound_of(counted: Sequence[int], cuts: Sequence[int]) -> float:
    """Return the multiplications of the whole by those of the stage that has most."""
    return sum(counted) / max(sum(counted[a:b]) for a, b in pairwise(cuts))


def stages_by_counting(
    layers: Sequence[nn.Module], sample: Value, stages: int
) -> tuple[list[nn.Module], float]:
    """Return layers in the stages that counting balances best, and the bound by counting."""
    counted = operations(layers, sample)
    cuts = counted_cuts(counted, stages)
    return [nn.Sequential(*layers[a:b]) for a, b in pairwise(cuts)], bound_of(counted, cuts)


def balance_rows(settings: SpeedSettings) -> list[Row]:
    """Return a row a network, work and number of stages."""
    rows: list[Row] = []
    with deterministic(threads=1):
        for case in counted_cases(settings):
            network, sample = case.network(settings), case.sample()
            counted = operations(layers_of(network, division), sample)
            layers = len(counted)
            for work, learning in WORKS.items():
                for depth, stages in balanced(network, sample, settings.depths, learning=learning):
                    row: Row = {
                        **case.named,
                        "work": work,
                        "stages": depth,
                        "layers": layers,
                        "cuts": " + ".join(str(b - a) for a, b in pairwise(stages.cuts)),
                        "stage_ms": " | ".join(f"{1000 * s:.2f}" for s in stages.seconds),
                        "bound": stages.bound,
                        "bound_by_operations": bound_of(counted, counted_cuts(counted, depth)),
                        "even_bound": bound_of(counted, even_cuts(layers, depth)),
                    }
                    rows.append(row)
    return rows
