"""What the executor `graph` does not take: each refusal is a line that says what to use instead."""

from functools import partial

import pytest
import torch
from torch import nn

from actionspan.streaming import Pipeline, StageError
from streaming.cuda_networks import (
    TensorAdam,
    fused_sgd,
    normed,
    samples_of,
    squared,
    tanh_layers,
    tensor_adam,
)
from streaming.stand_in import Machine

LEARNING = {"loss": squared, "optimiser": fused_sgd}


REFUSED = [
    ({"gradients": "stash"}, 'stage 1 of 2: gradients "stash" need inputs.*gradients "paper"'),
    ({"gradients": "inputs"}, 'stage 1 of 2: gradients "inputs" need inputs'),
    ({"optimiser": torch.optim.Adam}, r"needs Adam\(..., capturable=True\), or use executor"),
    (
        {"optimiser": partial(torch.optim.SGD, lr=0.1, fused=True)},
        r"needs SGD\(..., lr=torch.tensor\(0.1\)\)",
    ),
    (
        {"optimiser": lambda p: torch.optim.SGD(p, lr=torch.tensor(0.1))},
        r"needs SGD\(..., fused=True\).*or use executor \"stream\"",
    ),
]


@pytest.mark.parametrize(("how", "message"), REFUSED)
def test_what_is_known_beforehand_is_refused_at_once(monkeypatch, how, message):
    monkeypatch.setattr("actionspan.streaming.cuda.cuda_backend", lambda name: Machine())
    with pytest.raises(ValueError, match=message) as found:
        Pipeline(tanh_layers(2), "graph", **(LEARNING | how))
    assert "\n" not in str(found.value)


def test_active_dropout_is_refused(monkeypatch):
    monkeypatch.setattr("actionspan.streaming.cuda.cuda_backend", lambda name: Machine())
    message = "stage 1 of 2 has active dropout.*or eval"
    with pytest.raises(ValueError, match=message):
        Pipeline(normed(2, 0.5), "graph", **LEARNING)
    stages = [stage.eval() for stage in normed(2, 0.5)]
    pipeline = Pipeline(stages, "graph", **LEARNING)
    with pytest.raises(ValueError, match=message):
        pipeline.train()


class Reading(nn.Module):
    def forward(self, x):
        return x * float(x.detach().abs().max())


class Drawing(nn.Module):
    def forward(self, x):
        return x + torch.rand(x.shape)


class Replacing(nn.Module):
    mean: torch.Tensor

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
        return x - self.mean


class Counting(TensorAdam):
    def step(self, closure=None):
        super().step()
        for state in self.state.values():
            state["calls"] = state.get("calls", 0) + 1


@pytest.mark.parametrize(
    ("module", "optimiser", "why"),
    [
        (Reading(), tensor_adam, "operation not permitted when stream is capturing"),
        (Drawing(), tensor_adam, "it draws random numbers"),
        (Replacing(), tensor_adam, "it replaces a buffer or a state"),
        (nn.Identity(), lambda p: Counting(p, torch.tensor(0.1)), "its optimiser counts on the"),
    ],
)
def test_what_shows_in_warm_up_or_capture_is_refused(monkeypatch, module, optimiser, why):
    machine = Machine()
    monkeypatch.setattr("actionspan.streaming.cuda.cuda_backend", lambda name: machine)
    stages = [*tanh_layers(1), nn.Sequential(*tanh_layers(1), module)]
    how = {"loss": squared, "optimiser": optimiser}
    with machine:
        pipeline = Pipeline(stages, "graph", **how)
        with pytest.raises(StageError) as found:
            list(pipeline.run(samples_of(9)))
    assert isinstance(found.value, ValueError)
    assert str(found.value).startswith("stage 2 of 2, sample 1: it cannot be a graph: ")
    assert why in str(found.value)
    assert str(found.value).endswith('use executor "stream"')


@pytest.mark.parametrize(
    "forbidden",
    [
        lambda machine: machine.pinned(torch.zeros(1)),
        lambda machine: machine.synchronize(),
        lambda machine: machine.record(machine.streams[0]),
    ],
)
def test_nothing_is_pinned_or_waited_for_inside_a_capture(forbidden):
    machine = Machine()
    stream = machine.stream(machine.devices()[0])
    with pytest.raises(RuntimeError, match="while a stream was capturing"):
        machine.capture(stream, [lambda: forbidden(machine)])
