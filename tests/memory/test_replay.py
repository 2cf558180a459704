"""One backward pass for any number of videos and pieces; hooks, frames, and what is left of it."""

import gc
import weakref

import pytest
import torch
from torch import nn
from torch.autograd import Function

from actionspan.memory import StochasticBackward
from actionspan.memory.ways import make_way
from memory.encoders import (
    EXECUTIONS,
    Head,
    Pictures,
    Step,
    TwoStreams,
    equal,
    furthest,
    head_like,
    row_gradients,
    seeded,
    tiny,
    video,
)


class AsPrinted(Function):
    """Algorithm 1 of paper 004 for replay: it takes the input alone, and the encoder aside."""

    @staticmethod
    def forward(ctx, encoder, frames, rows):
        ctx.encoder, ctx.frames, ctx.rows = encoder, frames, rows
        with torch.no_grad():
            return encoder(frames)

    @staticmethod
    def backward(ctx, gradient):
        nodes = ctx.frames[ctx.rows].detach().requires_grad_()
        with torch.enable_grad():
            features = ctx.encoder(nodes)
        (found,) = torch.autograd.grad(features, nodes, gradient[ctx.rows])
        total = torch.zeros_like(ctx.frames)
        total[ctx.rows] = found
        return None, total, None


def test_algorithm_1_as_printed_trains_nothing_in_the_encoder():
    encoder, rows = tiny(), torch.arange(7)
    features = AsPrinted.apply(encoder, video(7), rows)
    assert not features.requires_grad  # pictures need no gradient, so the output needs none
    head_like(features)(AsPrinted.apply(encoder, video(7).requires_grad_(), rows)).backward()
    assert all(parameter.grad is None for parameter in encoder.parameters())


@pytest.mark.parametrize("ratio", [0.6, [0.3, 0.6, 1.0]])
def test_each_hook_is_called_once_a_step_for_three_videos_in_pieces_of_two(ratio):
    """Of two kinds of hooks; the first halves the gradient."""
    gradients = []
    for execution in EXECUTIONS:
        encoder, head, generator, calls = tiny(), Head().double(), seeded(), []

        def halve(gradient, calls=calls):
            calls.append("gradient")
            return gradient / 2

        for parameter in encoder.parameters():
            parameter.register_hook(halve)
            parameter.register_post_accumulate_grad_hook(lambda _, calls=calls: calls.append("sum"))
        spatial = StochasticBackward(encoder, ratio, execution=execution, piece=2)
        sum(head(spatial(video(n), generator=generator)) for n in (7, 9, 4)).backward()
        assert sorted(calls) == ["gradient"] * 4 + ["sum"] * 4
        gradients.append([parameter.grad for parameter in encoder.parameters()])
    assert furthest(*gradients) < 1e-12


def test_dropped_rows_of_frames_that_learn_have_a_gradient_of_zero():
    rows, _ = row_gradients(tiny(), video(7))
    assert bool((rows != 0).any(dim=1).all())
    found = []
    for execution in EXECUTIONS:
        before = nn.Linear(5, 5).double()
        torch.nn.init.eye_(before.weight)
        torch.nn.init.zeros_(before.bias)
        frames = before(video(7))  # not a leaf
        frames.retain_grad()
        how = {"keep_ratio": 3 / 7, "gradient_weight": "unbiased", "piece": 2}
        step = Step(tiny(), frames, execution=execution, **how)
        assert int((frames.grad != 0).any(dim=1).sum()) == 3
        found.append([frames.grad, before.weight.grad, *step.gradients])
    assert furthest(*found) < 1e-13
    frozen = Step(tiny().requires_grad_(False), frames.detach().requires_grad_(), keep_ratio=3 / 7)
    assert frozen.gradients == [None] * 4


class Branching(nn.Module):
    """Uses `used`, and `other` only for long videos, and a parameter by two names, and a list."""

    def __init__(self):
        super().__init__()
        self.used, self.other, self.never = (nn.Linear(5, 3).double() for _ in range(3))
        self.again = nn.Linear(5, 3).double()
        self.again.weight = self.used.weight
        self.scale = nn.Parameter(torch.ones(3).double())
        self.kept_in_a_list = [self.scale]
        self.recurrent = nn.GRU(3, 3, batch_first=True).double()

    def forward(self, frames):
        first = self.used(frames) + self.again(frames).sin()
        features = self.recurrent(first[:, None])[0][:, 0] * self.kept_in_a_list[0]
        return features + self.other(frames) if float(frames[0, 0]) > 100 else features


def test_parameters_that_are_not_used_have_no_gradient_and_all_others_have():
    torch.manual_seed(3)
    encoder = Branching()
    found = [Step(encoder, video(7), keep_ratio=0.5, piece=2, execution=e) for e in EXECUTIONS]
    names = [name for name, _ in encoder.named_parameters()]
    by_name = [dict(zip(names, each.gradients, strict=True)) for each in found]
    for gradients in by_name:
        none = [name for name in names if gradients[name] is None]
        assert none == ["other.weight", "other.bias", "never.weight", "never.bias"]
    used = [name for name in names if name not in none]
    assert furthest(*([gradients[name] for name in used] for gradients in by_name)) < 1e-12


def test_the_encoder_has_its_own_parameters_after_a_fault():
    encoder = tiny()
    before = dict(encoder.named_parameters())
    features = StochasticBackward(encoder, 0.5)(video(7), generator=seeded())
    encoder[2].register_forward_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        features.sum().backward()
    after = dict(encoder.named_parameters())
    assert list(before) == list(after)
    assert all(before[name] is after[name] for name in before)
    assert all(parameter.grad is None for parameter in encoder.parameters())


@pytest.mark.parametrize("what", ["learning", "frozen", "buffer", "frames", "learning frames"])
def test_tensors_changed_before_backward_are_an_error(what):
    encoder, frames = tiny(), video(7)
    encoder[2].requires_grad_(False)
    encoder.register_buffer("mean", torch.ones(3))
    if what == "learning frames":
        frames.requires_grad_()
    features = StochasticBackward(encoder, 0.5)(frames)
    changed = {"learning": encoder[0].weight, "frozen": encoder[2].weight, "buffer": encoder.mean}
    with torch.no_grad():
        changed.get(what, frames).add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        features.sum().backward()


@pytest.mark.parametrize("type_", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("how", ["SGD", "Adam", "AdamW", "data"])
def test_changes_that_torch_does_not_count_are_an_error(how, type_):
    encoder = tiny().to(type_)
    features = StochasticBackward(encoder, 0.5)(video(7).to(type_))
    if how == "data":
        encoder[2].bias.data.add_(1)
    else:
        for parameter in encoder.parameters():
            parameter.grad = torch.ones_like(parameter)
        getattr(torch.optim, how)(encoder.parameters(), lr=0.1, fused=True).step()
    with pytest.raises(RuntimeError, match="of the encoder was modified between"):
        features.sum().backward()


def test_another_mode_in_backward_is_an_error():
    encoder = nn.Sequential(*tiny(), nn.Dropout(0.5))
    features = StochasticBackward(encoder, 0.5)(video(7))
    encoder[3].eval()
    with pytest.raises(RuntimeError, match=r"^train\(\) or eval\(\) was called[^\n]*\Z"):
        features.sum().backward()


def test_parameters_may_be_frozen_before_backward():
    """As in plain training, they get no gradient then; the others do."""
    encoder = tiny()
    expected = Step(encoder, video(7), keep_ratio=0.5, piece=2)
    features = StochasticBackward(encoder, 0.5, piece=2)(video(7), generator=seeded())
    encoder[0].requires_grad_(False)
    head_like(features)(features).backward()
    assert encoder[0].weight.grad is None
    assert encoder[0].bias.grad is None
    assert torch.equal(encoder[2].weight.grad, expected.gradients[2])


def test_gradients_of_replay_have_no_gradient_of_their_own():
    encoder = tiny()
    loss = StochasticBackward(encoder, 0.5)(video(7)).square().sum()
    (first,) = torch.autograd.grad(loss, encoder[0].weight, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


@pytest.mark.parametrize("sampler", ["uniform_random", "importance"])
def test_a_second_backward_through_a_retained_graph_keeps_the_same_rows(sampler):
    encoder = tiny()
    features = StochasticBackward(encoder, 0.3, sampler=sampler)(video(9), generator=seeded())
    loss, weights = head_like(features)(features), list(encoder.parameters())
    assert equal(*(torch.autograd.grad(loss, weights, retain_graph=True) for _ in range(2)))


def test_replay_asks_for_all_rows_in_order_and_then_for_the_kept_ones_in_pieces():
    frames = Pictures(9)
    Step(TwoStreams(), frames, keep_ratio=1 / 3, piece=2, sampler="fixed")
    assert frames.asked == [[0, 1], [2, 3], [4, 5], [6, 7], [7, 8], [0, 3], [6]]


@pytest.mark.parametrize("way", ["sbp", "bank", "checkpoint", "sbp_checkpoint", "frame_dropout"])
@pytest.mark.parametrize("execution", EXECUTIONS)
def test_nothing_of_a_step_is_alive_after_it(way, execution):
    saved = []
    encoder = nn.Sequential(*tiny(), nn.Tanh())

    def note(_, inputs, output):
        saved.extend(map(weakref.ref, [inputs[0], output]))

    for part in encoder:
        part.register_forward_hook(note)
    module = make_way(way, encoder, 0.5, execution=execution, piece=2)
    gc.disable()
    try:
        frames = video(7)
        features = module(frames, generator=seeded())
        loss = features.sin().sum()
        saved += [weakref.ref(frames), weakref.ref(features)]
        loss.backward()
        del frames, features, loss
        assert [each() for each in saved if each() is not None] == []
    finally:
        gc.enable()


def test_the_graph_of_a_piece_is_gone_before_the_next_is_run():
    alive, most, encoder = [], [], tiny()

    def note(_, __, output):
        if torch.is_grad_enabled():
            most.append(sum(each() is not None for each in alive))
            alive.append(weakref.ref(output))

    encoder[1].register_forward_hook(note)
    gc.disable()
    try:
        StochasticBackward(encoder, 1, piece=3)(video(12)).sin().sum().backward()
    finally:
        gc.enable()
    assert len(most) == 4
    assert max(most) <= 1  # the output of the last piece at most, whose tensors are freed
