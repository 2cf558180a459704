"""The small networks of the experiments, each a list of parts that stages are made of."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from actionspan.networks.division import division
from actionspan.streaming.balance import Costs, partition
from actionspan.streaming.messages import Value
from actionspan_papers.partime.published import ENCODERS, PLAIN, POOLED
from actionspan_papers.partime.settings import SpeedSettings

RANDOM_INPUTS, RANDOM_UNITS, RANDOM_OUTPUTS = 16, 32, 4
FLOW_CUES = 5


def in_stages(parts: Sequence[nn.Module], stages: int) -> list[nn.Module]:
    """Return parts in so many stages of about as many parts each."""
    ends = np.linspace(0, len(parts), stages + 1).round().astype(int)
    return [nn.Sequential(*parts[a:b]) for a, b in zip(ends, ends[1:], strict=False)]


def perceptron(
    inputs: int, hidden: int, outputs: int, activation: type[nn.Module]
) -> nn.Sequential:
    """Return four linear layers, (B, inputs) to (B, outputs)."""
    widths = [inputs, hidden, hidden, hidden, outputs]
    parts = [
        nn.Sequential(nn.Linear(a, b), activation() if place < 3 else nn.Identity())
        for place, (a, b) in enumerate(zip(widths, widths[1:], strict=False))
    ]
    return nn.Sequential(*parts)


def teacher(generator: torch.Generator) -> nn.Module:
    """Return a fixed network of random weights that random streams get their targets from."""
    network = perceptron(RANDOM_INPUTS, RANDOM_UNITS, RANDOM_OUTPUTS, nn.Tanh)
    with torch.no_grad():
        for parameter in network.parameters():
            scale = parameter.shape[1] ** -0.5 if parameter.ndim == 2 else 0.0
            parameter.copy_(scale * torch.randn(parameter.shape, generator=generator))
    return network.requires_grad_(False)


def autoencoder() -> nn.Sequential:
    """Return four convolutions, (B, 1, h, w) frames to frames by way of a quarter of the size."""
    return nn.Sequential(
        nn.Sequential(nn.Conv2d(1, 8, 4, 2, 1), nn.Tanh()),
        nn.Sequential(nn.Conv2d(8, 16, 4, 2, 1), nn.Tanh()),
        nn.Sequential(nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.Tanh()),
        nn.ConvTranspose2d(8, 1, 4, 2, 1),
    )


class FlowPart(nn.Module):
    """A part of the flow network: (B, C, h, w) to (B, C', h', w')."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, images: Tensor) -> Tensor:
        """Convolve and activate."""
        return functional.leaky_relu(self.layer(images), 0.1)


def flow_network(maps: int) -> nn.Sequential:
    """Return an encoder-decoder, (B, 5, h, w) cues of motion to (B, 2, h, w) flow in pixels."""
    last = nn.Conv2d(maps, 2, 3, padding=1)
    with torch.no_grad():
        last.weight.mul_(0.1)  # it begins with little motion
    return nn.Sequential(
        FlowPart(nn.Conv2d(FLOW_CUES, maps, 5, 2, 2)),
        FlowPart(nn.Conv2d(maps, 2 * maps, 5, 1, 2)),
        FlowPart(nn.Conv2d(2 * maps, 2 * maps, 5, 1, 4, dilation=2)),
        nn.Sequential(FlowPart(nn.ConvTranspose2d(2 * maps, maps, 4, 2, 1)), last),
    )


def convolutions(layers: int, maps: int, outputs: int, *, pooled: bool) -> nn.Sequential:
    """Return tables I and II's networks: (B, 3, R, R) to (B, F, R, R), or pooled to (B, F).

    The pooled one halves its pictures after every quarter of its layers but the last.
    """
    quarter = layers // 4
    parts: list[nn.Module] = []
    for layer in range(layers):
        last = layer == layers - 1
        parts.append(
            nn.Sequential(
                nn.Conv2d(3 if layer == 0 else maps, outputs if last else maps, 3, padding=1),
                nn.Identity() if last else nn.ReLU(),
            )
        )
        if pooled and (layer + 1) % quarter == 0 and not last and (layer + 1) // quarter < 4:
            parts.append(nn.MaxPool2d(2))
    if pooled:
        parts.append(nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()))
    return nn.Sequential(*(Whole(part) for part in parts))


class Whole(nn.Module):
    """A part that balancing does not divide: `nn.Sequential` alone is divided."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, images: Tensor) -> Tensor:
        """Return what the inner module makes of it."""
        out: Tensor = self.inner(images)
        return out


def encoder(name: str, outputs: int) -> nn.Module:
    """Return ResNet-18 or EfficientNet-Lite0 with random weights and F classes."""
    from actionspan.networks.architecture import architecture

    return architecture(name).build(3, outputs)


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
    def named(self) -> dict[str, str | int]:
        """The cells that name it in tables."""
        return {"network": self.name, "R": self.side, "F": self.outputs}


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
