"""Encoders that draw random numbers, and the generators of whoever calls."""

import copy

import pytest
import torch
from torch import nn

from actionspan.memory import StochasticBackward
from memory.encoders import Step, furthest, head_like, seeded, tiny, video


def dropping(rate=0.5):
    parts = tiny()
    return nn.Sequential(parts[0], nn.Dropout(rate), parts[1], nn.Dropout(rate), parts[2])


class StochasticDepth(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = tiny()
        self.other = nn.Linear(5, 3).double()

    def forward(self, frames):
        keep = torch.rand(len(frames), 1, dtype=frames.dtype) > 0.5
        return self.other(frames) + keep * self.inner(frames)


def loss_of(spatial, frames, seed):
    features = spatial(frames, generator=seeded(seed))
    return head_like(features)(features)


@pytest.mark.parametrize(
    ("make", "sampler", "ratio"),
    [
        (dropping, "uniform_random", 1.0),
        (dropping, "diverse_feature", 1.0),
        (dropping, "uniform_random", [1.0] * 5),
        (StochasticDepth, "uniform_random", 1.0),
        (StochasticDepth, "diverse_feature", 1.0),
    ],
)
def test_the_second_run_draws_the_numbers_of_the_first(make, sampler, ratio):
    """The gradient is that of the very loss: by finite differences, with all rows kept."""
    torch.manual_seed(0)
    encoder, frames = make(), video(7)
    spatial = StochasticBackward(encoder, ratio, sampler=sampler, piece=3)
    loss_of(spatial, frames, 3).backward()
    step = 1e-6
    for parameter in encoder.parameters():
        direction = torch.randn(parameter.shape, generator=seeded(8), dtype=torch.float64)
        losses = []
        for sign in (1, -1):
            with torch.no_grad():
                parameter += sign * step * direction
            losses.append(float(loss_of(spatial, frames, 3).detach()))
            with torch.no_grad():
                parameter -= sign * step * direction
        slope = (losses[0] - losses[1]) / (2 * step)
        assert float((parameter.grad * direction).sum()) == pytest.approx(slope, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize(
    ("make", "sampler", "ratio"),
    [
        (dropping, "uniform_random", 0.5),
        (dropping, "diverse_feature", 0.5),
        (dropping, "fixed", [0.5, 0.5, 0.7, 0.7, 0.9]),
        (StochasticDepth, "checkerboard", 0.5),
    ],
)
def test_with_some_rows_kept_the_gradient_is_that_of_these_rows_with_the_masks_of_forward(
    make, sampler, ratio
):
    """What is kept is seen in a gradient of the frames; then finite differences of these alone."""
    torch.manual_seed(0)
    encoder = make()
    frames = video(9).requires_grad_()
    how = {"sampler": sampler, "gradient_weight": "paper", "piece": 2}
    spatial = StochasticBackward(encoder, ratio, **how)
    loss_of(spatial, frames, 3).backward()
    kept = (frames.grad != 0).any(dim=1)
    assert int(kept.sum()) == 5
    step = 1e-6
    for row in range(9):
        losses = []
        for sign in (1, -1):
            moved = frames.detach().clone()
            moved[row, 2] += sign * step
            moved.requires_grad_()
            losses.append(float(loss_of(spatial, moved, 3).detach()))
        if kept[row] and sampler != "diverse_feature":  # whose rows may change
            slope = (losses[0] - losses[1]) / (2 * step)
            assert float(frames.grad[row, 2]) == pytest.approx(slope, rel=1e-5, abs=1e-7)


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


def test_backward_draws_from_no_generator():
    for sampler in ("uniform_random", "diverse_feature", "importance", "diverse_gradient"):
        spatial = StochasticBackward(tiny(), 0.5, sampler=sampler, piece=2)
        features = spatial(video(7))  # from the global one
        before = torch.get_rng_state()
        features.sin().sum().backward()
        assert torch.equal(torch.get_rng_state(), before)


def test_without_a_generator_rows_come_from_the_global_one():
    found = []
    for generator in (None, seeded(9)):
        torch.manual_seed(9)
        encoder = tiny()
        spatial = StochasticBackward(encoder, 0.3, sampler="importance")
        spatial(video(9), generator=generator).sin().sum().backward()
        found.append([p.grad for p in encoder.parameters()])
    assert all(map(torch.equal, *found))


@pytest.mark.parametrize("sampler", ["diverse_gradient", "importance"])
def test_rows_chosen_in_backward_cannot_be_seeded_in_forward(sampler):
    spatial = StochasticBackward(dropping(), 0.5, sampler=sampler)
    before = torch.get_rng_state()
    with pytest.raises(ValueError, match=rf"^sampler is '{sampler}', .* random numbers") as error:
        spatial(video(7), generator=seeded())
    assert "\n" not in str(error.value)
    assert torch.equal(torch.get_rng_state(), before)
    spatial.eval()
    spatial(video(7), generator=seeded()).sum().backward()


@pytest.mark.parametrize("way", ["checkpoint", "sbp_checkpoint"])
def test_checkpointing_draws_the_same_numbers_again(way):
    how = {"keep_ratio": 1.0, "piece": 7}
    torch.manual_seed(4)
    expected = Step(dropping(), video(7), "full")
    torch.manual_seed(4)
    found = Step(dropping(), video(7), way, **how)
    assert furthest(found.gradients, expected.gradients) < 1e-13


def test_split_draws_once():
    torch.manual_seed(4)
    expected = Step(dropping(), video(7), "full")
    torch.manual_seed(4)
    found = Step(copy.deepcopy(dropping()), video(7), keep_ratio=1, execution="split")
    assert furthest(found.gradients, expected.gradients) == 0
