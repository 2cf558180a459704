"""Stages, optimisers and runs of the tests of the executors for GPUs."""

import copy
from functools import partial

import torch
from torch import nn

from actionspan.streaming import Pipeline
from streaming.stand_in import Machine

WIDTH = 4


def tanh_layers(stages, seed=0):
    """Return uneven stages: every second one has two layers."""
    torch.manual_seed(seed)
    return [
        nn.Sequential(
            *(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(1 + h % 2))
        )
        for h in range(stages)
    ]


def normed(stages, dropout=0.0):
    """Return stages with batch norm, layers that write into their input, and dropout."""
    torch.manual_seed(1)
    return [
        nn.Sequential(
            nn.Linear(WIDTH, WIDTH),
            nn.BatchNorm1d(WIDTH),
            nn.ReLU(inplace=True),
            *([nn.Dropout(dropout)] if dropout else []),
        )
        for _ in range(stages)
    ]


class Enter(nn.Module):
    def forward(self, x):
        return x, x


class Within(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)

    def forward(self, value):
        skip, x = value
        return skip, torch.tanh(self.layer(x))


class Leave(nn.Module):
    def forward(self, value):
        skip, x = value
        return skip + x


def skipping():
    """Return three stages with a connection that skips the one in the middle."""
    torch.manual_seed(2)
    first, last = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
    return [nn.Sequential(first, Enter()), Within(), nn.Sequential(Leave(), last)]


class TensorAdam(torch.optim.Optimizer):
    """Adam with all its state in tensors, as torch's own is with capturable=True, on CPU too."""

    def __init__(self, parameters, lr, betas=(0.9, 0.99), capturable=True):
        super().__init__(parameters, {"lr": lr, "betas": betas, "capturable": capturable})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            first, second = group["betas"]
            for parameter in group["params"]:
                state = self.state[parameter]
                if not state:
                    state["step"] = torch.zeros(())
                    state["mean"] = torch.zeros_like(parameter)
                    state["square"] = torch.zeros_like(parameter)
                gradient = parameter.grad
                state["step"] += 1
                state["mean"].mul_(first).add_(gradient, alpha=1 - first)
                state["square"].mul_(second).addcmul_(gradient, gradient, value=1 - second)
                mean = state["mean"] / (1 - first ** state["step"])
                root = (state["square"] / (1 - second ** state["step"])).sqrt_().add_(1e-8)
                parameter.sub_(group["lr"] * mean / root)


def fused_sgd(parameters, rate=0.05, momentum=0.9):
    """Make an optimiser that a graph can hold; each has a learning rate of its own."""
    return torch.optim.SGD(parameters, lr=torch.tensor(rate), momentum=momentum, fused=True)


def tensor_adam(parameters, rate=0.01):
    return TensorAdam(parameters, torch.tensor(rate))


momentum = partial(torch.optim.SGD, lr=0.05, momentum=0.9, weight_decay=1e-3)
halving = partial(torch.optim.lr_scheduler.StepLR, step_size=3, gamma=0.5)


def squared(output, target):
    return (output - target).square().mean()


def samples_of(count, seed=3, rows=3):
    generator = torch.Generator().manual_seed(seed)
    x, y = (torch.randn(count, rows, WIDTH, generator=generator) for _ in range(2))
    return list(zip(x, y, strict=True))


def weights(stages):
    return [
        tensor.detach().clone()
        for stage in stages
        for tensor in (*stage.parameters(), *stage.buffers())
    ]


def run(make, executor, samples, machine=None, patched=None, **how):
    """Return losses, and outputs with the weights after the stream, and check the order of work."""
    stages = make()
    if executor == "sequential":
        return _run(stages, executor, samples, how)
    machine = machine or Machine()
    patched.setattr("actionspan.streaming.cuda.cuda_backend", lambda name: machine)
    with machine:
        found = _run(stages, executor, samples, how)
    machine.check()
    return found


def _run(stages, executor, samples, how):
    before = copy.deepcopy(weights(stages))
    with Pipeline(stages, executor, **how) as pipeline:
        answers = list(pipeline.run(samples))
        report = pipeline.report()
    outputs = [
        tensor
        for answer in answers
        for tensor in (answer.output if isinstance(answer.output, tuple) else (answer.output,))
    ]
    assert [answer.index for answer in answers] == list(range(len(samples)))
    return {
        "losses": [answer.loss for answer in answers],
        "tensors": outputs + weights(stages),
        "counts": [(each["steps"], each["samples"], each["updates"]) for each in report],
        "before": before,
        "stages": stages,
        "report": report,
    }


def assert_same(first, second):
    """Assert that two runs are equal to the last bit."""
    assert first["losses"] == second["losses"]
    assert first["counts"] == second["counts"]
    for one, other in zip(first["tensors"], second["tensors"], strict=True):
        assert torch.equal(one, other)
