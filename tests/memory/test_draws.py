"""Whether an encoder draws is known from its own operators."""

import threading
from contextlib import contextmanager

import pytest
import torch
from torch import nn
from torch.nn import functional

from actionspan.memory import StochasticBackward
from actionspan.memory.randomness import drawing
from memory.encoders import seeded, tiny, video


class Called(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function
        self.p = 0.0

    def forward(self, frames):
        return self.function(frames, self.p)


def attention(frames, p):
    heads = frames[None, None]
    return functional.scaled_dot_product_attention(heads, heads, heads, dropout_p=p)


def found(encoder):
    frames = torch.ones(6, 8)
    with drawing(encoder) as draws:
        encoder(frames)
    return draws.random


DRAWING = [
    nn.Dropout(0.5),
    nn.AlphaDropout(0.2),
    nn.RReLU(),
    nn.GRU(8, 8, 2, dropout=0.5),
    nn.TransformerEncoderLayer(8, 2, 8),
    Called(lambda frames, _: frames + torch.randn(8)),
    Called(lambda frames, _: frames + torch.rand_like(frames)),
    Called(lambda frames, _: frames[torch.randperm(6)]),
]


@pytest.mark.parametrize("encoder", DRAWING)
def test_encoders_that_draw(encoder):
    assert found(encoder.train())
    assert found(encoder)  # it is known now
    if not isinstance(encoder, Called):
        assert not found(encoder.eval())
        assert found(encoder.train())


@pytest.mark.parametrize(
    "encoder",
    [
        nn.Linear(8, 3),
        nn.Dropout(0),
        nn.GRU(8, 8, 2),
        nn.TransformerEncoderLayer(8, 2, 8, dropout=0),
        Called(attention),
        Called(lambda frames, _: frames + torch.randn(8, generator=seeded())),
    ],
)
def test_encoders_that_do_not(encoder):
    assert not found(encoder.train())


def test_a_probability_that_changes_is_seen():
    encoder = nn.Sequential(nn.Linear(8, 8), Called(attention))
    for p in (0.0, 0.5, 0.0):
        encoder[1].p = p
        assert found(encoder) == (p > 0)


@contextmanager
def thread_that_draws():
    stopped, drawn = threading.Event(), threading.Event()

    def draw():
        while not stopped.is_set():
            torch.rand(3)
            drawn.set()

    thread = threading.Thread(target=draw, daemon=True)
    thread.start()
    try:
        yield drawn
    finally:
        stopped.set()
        thread.join()


@pytest.mark.parametrize("sampler", ["uniform_random", "importance"])
def test_what_another_thread_draws_changes_nothing(sampler):
    encoders = [tiny(), tiny()]

    def step(drawn=None):
        encoder, generator = encoders.pop(), seeded()

        def wait(*_):
            if drawn is not None:
                drawn.clear()
                assert drawn.wait(60)  # numbers are drawn while the encoder runs

        encoder[1].register_forward_hook(wait)
        spatial = StochasticBackward(encoder, 0.5, sampler=sampler, piece=4)
        features = spatial(video(9), generator=generator)
        features.sin().sum().backward()
        gradients = [parameter.grad for parameter in encoder.parameters()]
        return [features.detach(), *gradients, torch.rand(1, generator=generator)]

    alone = step()
    with thread_that_draws() as drawn:
        together = step(drawn)
    assert all(map(torch.equal, alone, together))
