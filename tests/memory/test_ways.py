"""The ways that SBP is compared with, behind the same call."""

from typing import get_args

import numpy as np
import pytest
import torch
from torch import nn

from actionspan.memory.ways import Way, make_way
from memory.encoders import (
    Pictures,
    Step,
    TwoStreams,
    equal,
    flat,
    full,
    furthest,
    head_like,
    pictures,
    resnet18,
    seeded,
    tiny,
    video,
)

WAYS = get_args(Way)
EXACT = ("sbp", "full", "frozen", "checkpoint", "sbp_checkpoint")


@pytest.mark.parametrize("way", WAYS)
def test_every_way_has_the_encoder_and_the_same_call(way):
    encoder = tiny()
    module = make_way(way, encoder, 0.4, piece=3)
    assert module.encoder is encoder
    for count in (1, 2, 9):
        features = module(video(count), generator=seeded(), key=str(count))
        assert features.shape == (count, 3)
        assert features.requires_grad == (way != "frozen")
        with torch.no_grad():
            evaluated = module(video(count), generator=seeded(), key=str(count))
        assert furthest([evaluated], [tiny()(video(count)).detach()]) < 1e-14
        if way in EXACT:
            assert furthest([features.detach()], [evaluated]) < 1e-14
    with pytest.raises(ValueError, match="^the video has 0 rows"):
        module(video(0))


@pytest.mark.parametrize("way", [each for each in WAYS if each not in ("frozen", "frame_dropout")])
def test_frames_may_be_made_when_asked_for_and_have_several_streams(way):
    expected = full(TwoStreams(), Pictures(9))
    found = Step(TwoStreams(), Pictures(9), way, keep_ratio=1, piece=4)
    assert furthest(found.gradients, expected.gradients) < 1e-13


def test_full_is_plain_training_to_the_bit_and_checkpoint_to_rounding():
    encoder, frames = resnet18(), pictures(5)
    plain = encoder(frames)
    head_like(plain)(plain).backward()
    gradients = [parameter.grad for parameter in encoder.parameters()]
    encoder.zero_grad()
    assert equal(full(encoder, frames).gradients, gradients)
    checkpointed = Step(encoder, frames, "checkpoint", piece=2)
    torch.testing.assert_close(checkpointed.features, plain.detach(), rtol=1e-4, atol=1e-5)
    assert furthest(checkpointed.gradients, gradients) < 1e-4


@pytest.mark.parametrize("way", ["checkpoint", "sbp_checkpoint"])
def test_hooks_are_called_once_a_step_with_checkpoints(way):
    encoder, calls = tiny(), []
    for parameter in encoder.parameters():
        parameter.register_post_accumulate_grad_hook(lambda _: calls.append(1))
    module = make_way(way, encoder, 0.8, piece=2)
    sum(module(video(n), generator=seeded()).sin().sum() for n in (7, 9, 4)).backward()
    assert len(calls) == 4


@pytest.mark.parametrize("ratio", [0.25, 0.6, 1.0, [0.2, 0.5, 0.8]])
def test_split_with_checkpoints_has_the_gradient_of_split_and_runs_again_in_backward(ratio):
    steps, runs = [], []
    for way in ("sbp", "sbp_checkpoint"):
        encoder, modes = tiny(), []
        encoder[0].register_forward_hook(lambda *_, modes=modes: modes.append(1))
        module = make_way(way, encoder, ratio, execution="split", piece=2)
        features = module(video(9), generator=seeded())
        before = len(modes)
        features.sum().backward()
        runs.append(len(modes) - before)
        how = {"keep_ratio": ratio, "execution": "split", "piece": 2}
        steps.append(Step(tiny(), video(9), way, **how).gradients)
    assert furthest(steps[1], steps[0]) < 1e-13
    assert runs[0] == 0
    assert runs[1] >= 1


def test_frame_dropout_runs_kept_rows_alone_and_fills_the_gaps_on_straight_lines():
    encoder, run = tiny(), []
    encoder.register_forward_pre_hook(lambda _, inputs: run.append(len(inputs[0])))
    module = make_way("frame_dropout", encoder, 0.4, sampler="uniform_random")
    frames = video(10)
    plain = tiny()(frames).detach()
    for seed in range(5):
        features = module(frames, generator=seeded(seed)).detach()
        kept = [t for t in range(10) if torch.allclose(features[t], plain[t], atol=1e-12)]
        assert len(kept) == 4
        for channel in range(3):
            expected = np.interp(np.arange(10), kept, plain[kept, channel].numpy())
            np.testing.assert_allclose(features[:, channel].numpy(), expected, atol=1e-12)
    assert run == [4] * 5


def test_frame_dropout_has_the_gradient_of_its_own_loss():
    step = Step(tiny(), video(7), "frame_dropout", keep_ratio=0.5, gradient_weight="unbiased")
    losses = []
    for moved in (1e-6, -1e-6):
        other = tiny()
        with torch.no_grad():
            other[0].weight += moved
        losses.append(float(Step(other, video(7), "frame_dropout", keep_ratio=0.5).loss))
    slope = (losses[0] - losses[1]) / 2e-6
    assert float(step.gradients[0].sum()) == pytest.approx(slope, rel=1e-5)


def bank_of(encoder=None):
    return make_way("bank", tiny() if encoder is None else encoder, 0.3, piece=4)


def features_of(bank):
    return bank.state()["features"]


def test_the_bank_gives_dropped_rows_the_features_of_the_step_that_last_kept_them():
    encoder, frames, run = tiny(), video(9), []
    module = bank_of(encoder)
    encoder.register_forward_pre_hook(lambda _, inputs: run.append(len(inputs[0])))
    for step in range(5):
        with torch.no_grad():
            encoder[0].weight += 0.1  # features of now differ from those of the bank
        now = tiny()
        now.load_state_dict(encoder.state_dict())
        fresh = now(frames).detach()
        features = module(frames, generator=seeded(step), key="a")
        if step == 0:
            # a batch of another size may have other bits
            expected = features.detach().clone()
            torch.testing.assert_close(expected, fresh)
            assert sum(run) == 9
        else:
            kept = [t for t in range(9) if not torch.equal(features[t].detach(), expected[t])]
            assert len(kept) == 3
            torch.testing.assert_close(features.detach()[kept], fresh[kept])
            expected[kept] = features.detach()[kept]
            assert torch.equal(features.detach(), expected)
            assert run == [3]
        del run[:]
    module(video(5), generator=seeded(), key="b")
    for kept_features in features_of(module).values():
        assert (type(kept_features), kept_features.requires_grad) == (torch.Tensor, False)
    with pytest.raises(ValueError, match=r"^the video 'b' has 9 rows, but the bank has 5"):
        module(frames, key="b")


def test_a_state_of_the_bank_is_a_copy_both_ways_and_so_are_its_features():
    module, other = bank_of(), bank_of()
    features = module(video(9), generator=seeded(), key="a")
    expected = features.detach().clone()
    features.mul_(0)
    state = module.state()
    other.restore(state)
    state["features"]["a"].zero_()
    assert set(features_of(other)) == {"a"}
    for each in (module, other):
        assert torch.equal(features_of(each)["a"], expected)
    other(video(9), generator=seeded(9), key="a")
    assert torch.equal(features_of(module)["a"], expected)


def test_the_bank_has_the_gradient_of_its_kept_rows():
    how = {"keep_ratio": 1 / 3, "gradient_weight": "unbiased"}
    first = Step(tiny(), video(9), "bank", **how)  # all rows are new, so it is split
    split = Step(tiny(), video(9), execution="split", **how)
    assert furthest(first.gradients, split.gradients) < 1e-13
    assert float(flat(first.gradients).norm()) > 0
    module, frames = bank_of(nn.Tanh()), video(9).requires_grad_()  # without parameters
    for step in range(3):
        features = module(frames, generator=seeded(step), key="a")
    assert torch.equal(features, frames.tanh())
    features.sum().backward()
    assert int((frames.grad != 0).any(dim=1).sum()) == 3


def test_evaluation_neither_reads_nor_writes_the_bank():
    module = bank_of()
    with torch.no_grad():
        module(video(9), key="a")
    assert module.state() == {"features": {}}


@pytest.mark.parametrize("first", [True, False])
def test_the_banks_features_have_the_type_of_the_kept_rows_in_autocast_and_out_of_it(first):
    module, frames = bank_of(tiny().float()), video(9).float()
    for enabled in (first, not first, first):
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            features = module(frames, generator=seeded(), key="a")
        assert features.dtype == (torch.bfloat16 if enabled else torch.float32)
        features.float().sum().backward()


def test_a_bank_on_meta():
    module = bank_of(tiny().to("meta"))
    for _ in range(2):
        assert module(video(9).to("meta"), generator=seeded(), key="a").shape == (9, 3)
