"""The small networks of the experiments, each a list of parts that stages are made of."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

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
