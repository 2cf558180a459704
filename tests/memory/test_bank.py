"""The bank of features is its own: nobody else writes into it, and it fits the kept rows."""

import pytest
import torch
from torch import nn

from actionspan.memory.ways import make_way
from memory.encoders import seeded, tiny, video


def bank(encoder=None):
    return make_way("bank", tiny() if encoder is None else encoder, 0.3, piece=4)


def test_what_is_returned_may_be_changed_in_place():
    module = bank()
    features = module(video(9), generator=seeded(), key="a")
    expected = features.detach().clone()
    features.mul_(0)
    assert torch.equal(module.state()["features"]["a"], expected)


def test_a_state_is_a_copy_both_ways():
    module, other = bank(), bank()
    module(video(9), generator=seeded(), key="a")
    state = module.state()
    expected = state["features"]["a"].clone()
    other.restore(state)
    state["features"]["a"].zero_()
    for each in (module, other):
        assert torch.equal(each.state()["features"]["a"], expected)


def test_an_encoder_without_parameters():
    module = bank(nn.Tanh())
    frames = video(9).requires_grad_()
    for step in range(3):
        features = module(frames, generator=seeded(step), key="a")
    assert torch.equal(features, frames.tanh())
    features.sum().backward()
    assert int((frames.grad != 0).any(dim=1).sum()) == 3


@pytest.mark.parametrize("first", [True, False])
def test_features_have_the_type_of_the_kept_rows_in_autocast_and_out_of_it(first):
    module, frames = bank(tiny().float()), video(9).float()
    for enabled in (first, not first, first):
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            features = module(frames, generator=seeded(), key="a")
        assert features.dtype == (torch.bfloat16 if enabled else torch.float32)
        features.float().sum().backward()


def test_a_bank_on_meta():
    module = bank(tiny().to("meta"))
    for _ in range(2):
        assert module(video(9).to("meta"), generator=seeded(), key="a").shape == (9, 3)
