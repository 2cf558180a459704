"""The small networks of the experiments, each a list of parts that stages are made of."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from actionspan.networks.architecture import architecture
from actionspan.streaming.messages import Value
from actionspan.streaming.pipeline import Pipeline
from actionspan_papers.partime.published import ENCODERS, PLAIN, POOLED
from actionspan_papers.partime.settings import LAST_ONLY, SpeedSettings, Variant

RANDOM_INPUTS, RANDOM_UNITS, RANDOM_OUTPUTS = 16, 32, 4
_FLOW_CUES = 5
_SEED = 1


def even_cuts(layers: int, stages: int) -> list[int]:
    """Return the cuts into stages of similar length, whatever the layers cost."""
    return [round(stage * layers / stages) for stage in range(stages + 1)]


def in_stages(network: nn.Sequential, stages: int) -> list[nn.Module]:
    """Split the parts of a network into `stages` stages of similar length."""
    parts = list(network)
    return [nn.Sequential(*parts[a:b]) for a, b in pairwise(even_cuts(len(parts), stages))]


def learner(network: nn.Sequential, variant: Variant, rate: float, loss: Any) -> Pipeline:
    """Return a pipeline in which a network learns with Adam in a variant's way."""
    stages = in_stages(network, variant.stages)
    if variant.mode == LAST_ONLY:
        for stage in stages[:-1]:
            stage.requires_grad_(False)
    adam = partial(torch.optim.Adam, lr=rate)
    return Pipeline(stages, loss=loss, optimiser=adam, gradients=variant.gradients)


def perceptron(
    inputs: int, hidden: int, outputs: int, activation: type[nn.Module]
) -> nn.Sequential:
    """Return four linear layers, (B, inputs) to (B, outputs)."""
    widths = [inputs, hidden, hidden, hidden, outputs]
    ends = [activation() for _ in range(3)] + [nn.Identity()]
    layers = [nn.Linear(a, b) for a, b in pairwise(widths)]
    return nn.Sequential(*(nn.Sequential(*each) for each in zip(layers, ends, strict=True)))


def teacher(generator: torch.Generator) -> nn.Module:
    """Return a fixed network of random weights that random streams get their targets from."""
    network = perceptron(RANDOM_INPUTS, RANDOM_UNITS, RANDOM_OUTPUTS, nn.Tanh)
    with torch.no_grad():
        for parameter in network.parameters():
            scale = parameter.shape[1] ** -0.5 if parameter.ndim == 2 else 0.0
            parameter.copy_(scale * torch.randn(parameter.shape, generator=generator))
    return network.requires_grad_(False)


def autoencoder() -> nn.Sequential:
    """Return four convolutions, (B, 1, h, w) frames to frames through a quarter of the size."""
    return nn.Sequential(
        nn.Sequential(nn.Conv2d(1, 8, 4, 2, 1), nn.Tanh()),
        nn.Sequential(nn.Conv2d(8, 16, 4, 2, 1), nn.Tanh()),
        nn.Sequential(nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.Tanh()),
        nn.ConvTranspose2d(8, 1, 4, 2, 1),
    )


def flow_network(maps: int) -> nn.Sequential:
    """Return an encoder-decoder, (B, 5, h, w) cues of motion to (B, 2, h, w) flow in pixels."""
    last = nn.Conv2d(maps, 2, 3, padding=1)
    with torch.no_grad():
        last.weight.mul_(0.1)  # it begins with little motion
    layers = [
        nn.Conv2d(_FLOW_CUES, maps, 5, 2, 2),
        nn.Conv2d(maps, 2 * maps, 5, 1, 2),
        nn.Conv2d(2 * maps, 2 * maps, 5, 1, 4, dilation=2),
        nn.ConvTranspose2d(2 * maps, maps, 4, 2, 1),
    ]
    parts = [nn.Sequential(layer, nn.LeakyReLU(0.1)) for layer in layers]
    parts[-1].append(last)
    return nn.Sequential(*parts)


class Whole(nn.Module):
    """Layers that balancing keeps together: `nn.Sequential` alone is divided."""

    def __init__(self, layers: Iterable[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, value: Value) -> Value:
        """Apply all layers in order."""
        for layer in self.layers:
            value = layer(value)
        return value


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


def convolutions(layers: int, maps: int, outputs: int, *, pooled: bool) -> nn.Sequential:
    """Return tables I and II's networks: (B, 3, R, R) to (B, F, R, R), or pooled to (B, F).

    The pooled one halves its images after every quarter of its layers but the last.
    """
    quarter = layers // 4
    widths = [3, *[maps] * (layers - 1), outputs]
    parts: list[list[nn.Module]] = []
    for layer, (a, b) in enumerate(pairwise(widths), start=1):
        last = layer == layers
        parts.append([nn.Conv2d(a, b, 3, padding=1), nn.Identity() if last else nn.ReLU()])
        if pooled and layer % quarter == 0 and not last and layer // quarter < 4:
            parts.append([nn.MaxPool2d(2)])
    if pooled:
        parts.append([nn.AdaptiveAvgPool2d(1), nn.Flatten()])
    return nn.Sequential(*map(Whole, parts))


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
                return architecture(self.name).build(3, self.outputs)
            pooled = self.name == POOLED
            return convolutions(settings.layers, settings.maps, self.outputs, pooled=pooled)

    def sample(self) -> Tensor:
        """Return one image, (1, 3, R, R)."""
        generator = torch.Generator().manual_seed(_SEED)
        return torch.rand(1, 3, self.side, self.side, generator=generator)

    def target(self, network: nn.Module) -> Tensor:
        """Return the target of the output: zeros of its shape."""
        mode = network.training
        with torch.no_grad():
            made: Tensor = network.eval()(self.sample())
        network.train(mode)
        return torch.zeros_like(made)

    @property
    def named(self) -> dict[str, str | int]:
        """The cells that name it in tables."""
        return {"network": self.name, "R": self.side, "F": self.outputs}


def cases(settings: SpeedSettings) -> list[Case]:
    """Return the networks of both tables."""
    sizes = product((PLAIN, POOLED), settings.sides, settings.outputs)
    plain = [Case(*each) for each in sizes]
    return plain + [Case(name, settings.encoder_side, settings.outputs[-1]) for name in ENCODERS]


def counted_cases(settings: SpeedSettings) -> list[Case]:
    """Return the networks with the fewest outputs F.

    With few layers, F of 100 makes the last one cost as much as several: it would be that layer
    which bounds the stages.
    """
    fewest = settings.outputs[0]
    return [case for case in cases(settings) if case.name in ENCODERS or case.outputs == fewest]


def squared(output: Value, target: Value) -> Tensor:
    """Return the mean squared error of a tensor."""
    assert isinstance(output, Tensor)
    assert isinstance(target, Tensor)
    return functional.mse_loss(output, target)


def sgd(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Return the optimiser of all networks of which speed or bytes are measured."""
    return torch.optim.SGD(parameters, lr=1e-4)
