"""The networks whose speed is measured, balanced and drawn, each with a sample and a target."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from actionspan.networks.division import division
from actionspan.streaming.balance import Costs, partition
from actionspan.streaming.messages import Value
from actionspan_papers.partime.names import ENCODERS, PLAIN, POOLED
from actionspan_papers.partime.networks import convolutions, encoder
from actionspan_papers.partime.settings import SpeedSettings

_SEED = 1


@dataclass(frozen=True)
class Case:
    """A network by name, with R, the side of its images, and F, its outputs."""

    name: str
    side: int
    outputs: int

    def network(self, settings: SpeedSettings) -> nn.Module:
        """Return the network with random weights, the same each time."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(_SEED)
            if self.name in ENCODERS:
                return encoder(self.name, self.outputs)
            pooled = self.name == POOLED
            return convolutions(settings.layers, settings.maps, self.outputs, pooled=pooled)

    def sample(self) -> Tensor:
        """Return one image, (1, 3, R, R)."""
        generator = torch.Generator().manual_seed(_SEED)
        return torch.rand(1, 3, self.side, self.side, generator=generator)

    def target(self, network: nn.Module) -> Tensor:
        """Return what the output should be: zeros of its shape."""
        mode = network.training
        with torch.no_grad():
            made: Tensor = network.eval()(self.sample())
        network.train(mode)
        return torch.zeros_like(made)

    @property
    def named(self) -> dict[str, str]:
        """The cells that name it in tables."""
        return {"network": self.name, "R": str(self.side), "F": str(self.outputs)}


def counted_cases(settings: SpeedSettings) -> list[Case]:
    """Return the networks with the fewest outputs F.

    With few layers, F of 100 makes the last one cost as much as several: it would be that layer
    which bounds the stages.
    """
    return [
        case
        for case in cases(settings)
        if case.name in ENCODERS or case.outputs == settings.outputs[0]
    ]


def cases(settings: SpeedSettings) -> list[Case]:
    """Return the networks of both tables."""
    plain = [
        Case(name, side, outputs)
        for name in (PLAIN, POOLED)
        for side in settings.sides
        for outputs in settings.outputs
    ]
    return plain + [Case(name, settings.encoder_side, settings.outputs[-1]) for name in ENCODERS]


def squared(output: Value, target: Value) -> Tensor:
    """Return the loss with which the networks learn where only time counts."""
    assert isinstance(output, Tensor)
    assert isinstance(target, Tensor)
    return functional.mse_loss(output, target)


def inside(network: nn.Module) -> list[nn.Module] | None:
    """Return the chain that a network is, for `balance_stages(divide=…)`."""
    return division(network)


def operations(layers: Sequence[nn.Module], sample: Value) -> list[int]:
    """Return the multiplications of each of a chain of layers, of its convolutions and classifiers.

    They are counted, not timed: the same on every machine.
    """
    counted = []
    value = sample
    with torch.no_grad():
        for layer in layers:
            found: list[int] = []
            handles = [
                part.register_forward_hook(
                    lambda part, _, out, found=found: found.append(_operations(part, out))
                )
                for part in layer.modules()
                if isinstance(part, nn.Conv2d | nn.Linear)
            ]
            was = layer.training
            value = layer.eval()(value)
            layer.train(was)
            for handle in handles:
                handle.remove()
            counted.append(sum(found))
    return counted


def _operations(part: nn.Module, out: Tensor) -> int:
    if isinstance(part, nn.Conv2d):
        return out.numel() * part.weight[0].numel()
    assert isinstance(part, nn.Linear)
    return out.numel() * part.in_features


def stages_by_counting(
    layers: Sequence[nn.Module], sample: Value, stages: int
) -> tuple[list[nn.Module], float]:
    """Return layers in the stages that counting balances best, and the bound by counting."""
    counted = operations(layers, sample)
    cuts = counted_cuts(counted, stages)
    parts: list[nn.Module] = [nn.Sequential(*layers[a:b]) for a, b in pairwise(cuts)]
    return parts, bound_of(counted, cuts)


def counted_cuts(counted: Sequence[int], stages: int) -> list[int]:
    """Return the cuts of the best partition by counted multiplications."""
    seconds = tuple(map(float, counted))
    return partition(Costs(seconds=seconds, message_bytes=(0,) * (len(counted) + 1)), stages)


def bound_of(counted: Sequence[int], cuts: Sequence[int]) -> float:
    """Return the multiplications of the whole by those of the stage that has most."""
    return sum(counted) / max(sum(counted[a:b]) for a, b in pairwise(cuts))


def works() -> Iterator[tuple[str, bool]]:
    """Yield what is done, and whether it learns."""
    yield "inference", False
    yield "learning", True
