"""Stages, optimisers and runs of the tests of the executors for GPUs."""

from contextlib import contextmanager, nullcontext
from unittest import mock

import torch
from torch import nn

from actionspan.streaming import Pipeline
from streaming.networks import WIDTH, Enter, Leave, Within, halving, squared, stream, weights
from streaming.stand_in import Machine, tensors_in


def normed(stages, dropout=0.0):
    """Return stages with batch norm, layers that write into their input, and dropout."""
    torch.manual_seed(1)
    made = []
    for _ in range(stages):
        layers = [nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH), nn.ReLU(inplace=True)]
        made.append(nn.Sequential(*layers, *([nn.Dropout(dropout)] if dropout else [])).double())
    return made


def skipping():
    """Return three stages with a connection that skips the one in the middle."""
    torch.manual_seed(2)
    first, middle, last = (nn.Linear(WIDTH, WIDTH).double() for _ in range(3))
    within = Within(nn.Sequential(middle, nn.Tanh()))
    return [nn.Sequential(first, Enter()), within, nn.Sequential(Leave(), last)]


class Reading(nn.Module):
    """Reads the device, which a graph cannot."""

    def forward(self, x):
        return x * float(x.detach().abs().max())


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


BY_SGD = {"loss": squared, "optimiser": fused_sgd}
BY_ADAM = {"loss": squared, "optimiser": tensor_adam, "schedule": halving}


def inputs_of(count):
    return [x for x, _ in stream(count)]


@contextmanager
def working(machine, checked=True):
    """Let pipelines work on a stand-in for GPUs, and check the order of their work."""
    with mock.patch("actionspan.streaming.cuda.cuda_backend", return_value=machine):
        with machine:
            yield machine
        if checked:
            machine.check()


def run(make, executor, samples, machine=None, **how):
    stages = make()
    before = weights(stages)
    machine = nullcontext() if executor == "sequential" else working(machine or Machine())
    with machine:
        with Pipeline(stages, executor, **how) as pipeline:
            answers = list(pipeline.run(samples))
            report = pipeline.report()
        after = weights(stages)
    assert [answer.index for answer in answers] == list(range(len(samples)))
    outputs = tensors_in([answer.output for answer in answers])
    return {
        "losses": [answer.loss for answer in answers],
        "tensors": outputs + after,
        "after": after,
        "counts": [(each["steps"], each["samples"], each["updates"]) for each in report],
        "before": before,
        "stages": stages,
        "report": report,
    }


def assert_same(first, second):
    assert first["losses"] == second["losses"]
    assert first["counts"] == second["counts"]
    for one, other in zip(first["tensors"], second["tensors"], strict=True):
        assert torch.equal(one, other)


def as_sequential(make, executor, samples, machine=None, **how):
    found = run(make, executor, samples, machine, **how)
    assert_same(found, run(make, "sequential", samples, **how))
    return found


def goes_on(make, samples, step, machine, executors, **how):
    """Assert that a state after some steps goes on with the bits of the sequential executor."""
    whole = run(make, "sequential", samples, **how)
    for first, second in executors:
        with working(machine):
            with Pipeline(make(), first, **how) as pipeline:
                for x, y in samples[:step]:
                    pipeline.submit(x, y)
                state = pipeline.state_dict()
                held = [m for stage in state["stages"] for m in stage["arrived"] if m]
                assert all(tensor.device.type == "cpu" for m in held for tensor in m[1])
            stages = make()
            with Pipeline(stages, second, **how) as pipeline:
                pipeline.submit(*samples[0])  # a pipeline that has run already may go on too
                pipeline.load_state_dict(state)
                for x, y in samples[step:]:
                    pipeline.submit(x, y)
                losses = [answer.loss for answer in pipeline.drain()]
        assert losses == whole["losses"]
        found = weights(stages)
        assert all(map(torch.equal, found, whole["tensors"][-len(found) :]))
