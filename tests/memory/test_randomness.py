"""Encoders that draw random numbers, and the generators of whoever calls."""

import threading
from contextlib import contextmanager

import pytest
import torch
from torch import nn
from torch.nn import functional

from actionspan.memory import StochasticBackward
from actionspan.memory.randomness import drawing
from memory.encoders import Step, dropping, furthest, head_like, seeded, tiny, video


class StochasticDepth(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = tiny()
        self.other = nn.Linear(5, 3).double()

    def forward(self, frames):
        keep = torch.rand(len(frames), 1, dtype=frames.dtype) > 0.5
        return self.other(frames) + keep * self.inner(frames)


def loss_of(spatial, frames):
    features = spatial(frames, generator=seeded())
    return head_like(features)(features)


def slope(loss, values, direction):
    """The slope of a loss along a direction of values, by finite differences."""
    losses, step = [], 1e-6
    for sign in (1, -1):
        with torch.no_grad():
            values += sign * step * direction
        losses.append(float(loss().detach()))
        with torch.no_grad():
            values -= sign * step * direction
    return pytest.approx((losses[0] - losses[1]) / (2 * step), rel=1e-5, abs=1e-7)


@pytest.mark.parametrize(
    ("make", "sampler", "ratio"),
    [
        (dropping, "uniform_random", 1.0),
        (dropping, "diverse_feature", 1.0),
        (dropping, "uniform_random", [1.0] * 5),
        (StochasticDepth, "uniform_random", 1.0),
        (StochasticDepth, "diverse_feature", 1.0),
        (dropping, "uniform_random", 0.5),
        (dropping, "diverse_feature", 0.5),
        (dropping, "fixed", [0.5, 0.5, 0.7, 0.7, 0.9]),
        (StochasticDepth, "checkerboard", 0.5),
    ],
)
def test_the_second_run_draws_the_numbers_of_the_first(make, sampler, ratio):
    """The gradient is that of the very loss, by finite differences, where rows are kept."""
    torch.manual_seed(0)
    encoder, frames = make(), video(9).requires_grad_()
    how = {"sampler": sampler, "gradient_weight": "paper", "piece": 2}
    spatial = StochasticBackward(encoder, ratio, **how)
    loss_of(spatial, frames).backward()
    every = ratio in (1.0, [1.0] * 5)
    kept = torch.arange(9) if every else (frames.grad != 0).any(dim=1).nonzero()[:, 0]
    assert len(kept) == (9 if every else 5)
    if every:
        for parameter in encoder.parameters():
            direction = torch.randn(parameter.shape, generator=seeded(8), dtype=torch.float64)
            expected = slope(lambda: loss_of(spatial, frames), parameter, direction)
            assert float((parameter.grad * direction).sum()) == expected
    if every or sampler != "diverse_feature":  # whose rows may change with the frames
        for row in kept.tolist():
            direction = torch.zeros_like(frames)
            direction[row, 2] = 1
            expected = slope(lambda: loss_of(spatial, frames), frames, direction)
            assert float(frames.grad[row, 2]) == expected


def test_masks_differ_between_rows_pieces_and_steps():
    encoder = nn.Sequential(nn.Linear(5, 40, bias=False), nn.Dropout(0.5)).double()
    frames = video(1).expand(12, 5).contiguous()
    spatial = StochasticBackward(encoder, 0.5, piece=2)
    generator = seeded()
    with torch.no_grad():
        plain = encoder.eval()(frames)
    encoder.train()
    first, second = (spatial(frames, generator=generator).detach() for _ in range(2))
    masks = [tuple((row != 0).tolist()) for row in torch.cat([first, second])]
    assert len(set(masks)) == 24
    torch.testing.assert_close((2 * plain)[first != 0], first[first != 0])
    assert torch.equal(spatial(frames, generator=seeded()).detach(), first)


@pytest.mark.parametrize("sampler", ["uniform_random", "diverse_feature", "fixed"])
def test_replay_leaves_the_global_generator_as_it_was(sampler):
    for encoder in (tiny(), dropping()):
        before = torch.get_rng_state()
        Step(encoder, video(7), keep_ratio=0.5, sampler=sampler, piece=2)
        assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    "sampler", ["uniform_random", "diverse_feature", "importance", "diverse_gradient"]
)
def test_without_a_generator_rows_come_from_the_global_one_in_forward_alone(sampler):
    found = []
    for generator in (None, seeded(9)):
        torch.manual_seed(9)
        encoder = tiny()
        spatial = StochasticBackward(encoder, 0.3, sampler=sampler, piece=2)
        features = spatial(video(9), generator=generator)
        before = torch.get_rng_state()
        features.sin().sum().backward()
        assert torch.equal(torch.get_rng_state(), before)
        found.append([p.grad for p in encoder.parameters()])
    assert all(map(torch.equal, *found))


@pytest.mark.parametrize("sampler", ["diverse_gradient", "importance"])
def test_rows_chosen_in_backward_cannot_be_seeded_in_forward(sampler):
    spatial = StochasticBackward(dropping(), 0.5, sampler=sampler)
    before = torch.get_rng_state()
    with pytest.raises(ValueError, match=rf"^sampler is '{sampler}', .* random numbers.*\Z"):
        spatial(video(7), generator=seeded())
    assert torch.equal(torch.get_rng_state(), before)
    spatial.eval()
    spatial(video(7), generator=seeded()).sum().backward()


@pytest.mark.parametrize(
    ("way", "execution"), [("checkpoint", "replay"), ("sbp_checkpoint", "replay"), ("sbp", "split")]
)
def test_other_ways_draw_once_or_the_same_numbers_again(way, execution):
    torch.manual_seed(4)
    expected = Step(dropping(), video(7), "full")
    torch.manual_seed(4)
    found = Step(dropping(), video(7), way, keep_ratio=1.0, execution=execution, piece=7)
    assert furthest(found.gradients, expected.gradients) < 1e-13


class Called(nn.Module):
    """An encoder that is a function of the frames and of a probability."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.p = 0.0

    def forward(self, frames):
        return self.function(frames, self.p)


def attention(frames, p):
    heads = frames[None, None]
    return functional.scaled_dot_product_attention(heads, heads, heads, dropout_p=p)


def draws(encoder):
    with drawing(encoder) as watched:
        encoder(torch.ones(6, 8))
    return watched.random


@pytest.mark.parametrize(
    "encoder",
    [
        *(nn.Dropout(0.5), nn.AlphaDropout(0.2), nn.RReLU(), nn.GRU(8, 8, 2, dropout=0.5)),
        nn.TransformerEncoderLayer(8, 2, 8),
        Called(lambda frames, _: frames + torch.randn(8)),
        Called(lambda frames, _: frames + torch.rand_like(frames)),
        Called(lambda frames, _: frames[torch.randperm(6)]),
    ],
)
def test_encoders_that_draw(encoder):
    assert draws(encoder.train())
    assert draws(encoder)  # it is known now
    if not isinstance(encoder, Called):
        assert not draws(encoder.eval())
        assert draws(encoder.train())


@pytest.mark.parametrize(
    "encoder",
    [
        *(nn.Linear(8, 3), nn.Dropout(0), nn.GRU(8, 8, 2)),
        nn.TransformerEncoderLayer(8, 2, 8, dropout=0),
        Called(attention),
        Called(lambda frames, _: frames + torch.randn(8, generator=seeded())),
    ],
)
def test_encoders_that_do_not(encoder):
    assert not draws(encoder.train())


def test_a_probability_that_changes_is_seen():
    encoder = nn.Sequential(nn.Linear(8, 8), Called(attention))
    for p in (0.0, 0.5, 0.0):
        encoder[1].p = p
        assert draws(encoder) == (p > 0)


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
def test_draws_of_another_thread_change_nothing(sampler):
    def step(encoder, wait):
        encoder[1].register_forward_hook(wait)
        generator = seeded()
        spatial = StochasticBackward(encoder, 0.5, sampler=sampler, piece=4)
        features = spatial(video(9), generator=generator)
        features.sin().sum().backward()
        gradients = [parameter.grad for parameter in encoder.parameters()]
        return [features.detach(), *gradients, torch.rand(1, generator=generator)]

    first, second = tiny(), tiny()  # before the thread disturbs the numbers that they begin with
    alone = step(first, lambda *_: None)
    with thread_that_draws() as drawn:

        def wait(*_):
            drawn.clear()
            assert drawn.wait(60)  # numbers are drawn while the encoder runs

        together = step(second, wait)
    assert all(map(torch.equal, alone, together))
