"""Ratios for the parts of an encoder: all its parts are run, and nothing but them."""

import pytest
import torch
from torch import nn

from actionspan.memory import StochasticBackward
from memory.encoders import Step, full, furthest, seeded, tiny, video


def with_a_part_twice():
    torch.manual_seed(0)
    tanh = nn.Tanh()
    return nn.Sequential(nn.Linear(5, 4), tanh, nn.Linear(4, 3), tanh).double()


@pytest.mark.parametrize("execution", ["split", "replay"])
def test_a_part_that_comes_twice_is_run_twice(execution):
    encoder, frames = with_a_part_twice(), video(8)
    plain = full(encoder, frames)
    ratios = [0.25, 0.25, 0.5, 0.5]
    some = Step(encoder, frames, keep_ratio=ratios, execution=execution, piece=3)
    assert furthest([some.features], [plain.features]) < 1e-13
    ratios = [0.5, 1.0, 1.0, 1.0]
    last = Step(encoder, frames, keep_ratio=ratios, execution=execution, piece=3)
    assert furthest(last.gradients[2:], plain.gradients[2:]) < 1e-13


class Residual(nn.Sequential):
    """Does more than its parts."""

    def forward(self, frames):
        return frames + super().forward(frames)


@pytest.mark.parametrize("execution", ["split", "replay"])
def test_a_sequence_that_does_more_than_its_parts_is_refused(execution):
    ratios = [0.5, 0.5, 0.5]
    message = "^keep_ratio is a list, which is for an nn.Sequential, not Residual$"
    with pytest.raises(ValueError, match=message):
        StochasticBackward(Residual(*tiny()), ratios, execution=execution)
    register = ("register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook")
    for name in register:
        encoder = tiny()
        spatial = StochasticBackward(encoder, ratios, execution=execution)
        hook = getattr(encoder, name)(lambda *_: None)
        message = "^keep_ratio is a list, which is for an nn.Sequential without hooks: .*$"
        with pytest.raises(ValueError, match=message):
            StochasticBackward(encoder, ratios, execution=execution)
        with pytest.raises(ValueError, match=message):  # a hook of later
            spatial(video(7), generator=seeded()).sum().backward()
        hook.remove()
        spatial(video(7), generator=seeded()).sum().backward()
