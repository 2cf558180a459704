"""Small stages, losses and streams of the tests, where processes find them."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

EXECUTORS = ("sequential", "thread", "process")
MODES = ("paper", "inputs", "stash")
WIDTH = 4


class Affine(nn.Module):
    """tanh(x W + b), in float64 so that the closed form can be met to the last bit."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        shape = (WIDTH, WIDTH)
        weight = torch.randn(shape, generator=generator, dtype=torch.float64)
        self.weight = nn.Parameter(weight)
        self.bias = nn.Parameter(torch.zeros(WIDTH, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(x @ self.weight + self.bias)


class Slow(nn.Module):
    """Passes values on after a time that differs from call to call."""

    def __init__(self, seed: int, most: float = 0.004) -> None:
        super().__init__()
        self.seed, self.most, self.calls = seed, most, 0

    def forward(self, x: Any) -> Any:
        self.calls += 1
        time.sleep(self.most * (hash((self.seed, self.calls)) % 97) / 97)
        return x


class Failing(nn.Module):
    def __init__(self, call: int) -> None:
        super().__init__()
        self.call, self.calls = call, 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        if self.calls == self.call + 1:
            raise ValueError("the stage broke")
        return x


class Enter(nn.Module):
    """x to (x, x): the beginning of a skip connection."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x, x


class Within(nn.Module):
    """(skip, x) to (skip, layer(x))."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, value: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        skip, x = value
        return skip, self.layer(x)


class Leave(nn.Module):
    """(skip, x) to skip + x: its end."""

    def forward(self, value: tuple[Tensor, Tensor]) -> Tensor:
        skip, x = value
        return skip + x


def chain(stages: int, seed: int = 0) -> list[nn.Module]:
    """Return uneven stages: every second one has two layers."""
    return [
        nn.Sequential(*(Affine(seed + 10 * h + i) for i in range(1 + h % 2))) for h in range(stages)
    ]


def mixed(dropout: float = 0.0) -> list[nn.Module]:
    """Return stages with batch norm, layers that write into their input, and dropout."""
    torch.manual_seed(5)
    drop = [nn.Dropout(dropout)] if dropout else []
    return [
        nn.Sequential(nn.Linear(WIDTH, 6), nn.BatchNorm1d(6), nn.ReLU(inplace=True), *drop),
        nn.Sequential(nn.ReLU(inplace=True), nn.Linear(6, 6), nn.BatchNorm1d(6), *drop),
        nn.Sequential(nn.Linear(6, WIDTH)),
    ]


def stream(
    samples: int, seed: int = 1, correlation: float = 0.9, rows: int = 3, double: bool = True
) -> list[tuple[Tensor, Tensor]]:
    """Return samples and targets of an AR(1) process."""
    generator = torch.Generator().manual_seed(seed)
    dtype = torch.float64 if double else torch.float32
    draw = partial(torch.randn, rows, WIDTH, generator=generator, dtype=dtype)
    x, found = draw(), []
    for _ in range(samples):
        found.append((x, torch.sin(x.flip(1)) + 0.1 * draw()))
        x = correlation * x + (1 - correlation**2) ** 0.5 * draw()
    return found


def squared(output: Tensor, target: Tensor) -> Tensor:
    return (output - target).square().mean()


sgd = partial(torch.optim.SGD, lr=0.05)
momentum = partial(torch.optim.SGD, lr=0.05, momentum=0.9, weight_decay=1e-3)
adam = partial(torch.optim.Adam, lr=0.01)
halving = partial(torch.optim.lr_scheduler.StepLR, step_size=3, gamma=0.5)


class Recording(torch.optim.SGD):
    """SGD that notes the gradients that it gets."""

    def __init__(self, log: list[list[Tensor]], lr: float, parameters: list[nn.Parameter]) -> None:
        super().__init__(parameters, lr=lr)
        self.log = log

    def step(self, closure: Any = None) -> None:
        (group,) = self.param_groups
        self.log.append([parameter.grad.clone() for parameter in group["params"]])
        super().step()


def recorders(
    stages: int, lr: float
) -> tuple[list[list[list[Tensor]]], list[Callable[..., Recording]]]:
    """Return a log for each stage and the makers of the optimisers that write them."""
    logs: list[list[list[Tensor]]] = [[] for _ in range(stages)]
    return logs, [partial(Recording, log, lr) for log in logs]


def weights(stages: Sequence[nn.Module]) -> list[Tensor]:
    return [
        tensor.detach().clone()
        for stage in stages
        for tensor in (*stage.parameters(), *stage.buffers())
    ]


def same(first: Sequence[Tensor], second: Sequence[Tensor]) -> bool:
    return len(first) == len(second) and all(
        a.dtype == b.dtype and torch.equal(a, b) for a, b in zip(first, second, strict=True)
    )
