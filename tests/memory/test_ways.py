"""The ways that SBP is compared with, behind the same call."""

import numpy as np
import pytest
import torch

from actionspan.memory.ways import FeatureBank, make_way
from memory.encoders import (
    Step,
    equal,
    flat,
    full,
    furthest,
    head_like,
    pictures,
    resnet18,
    row_gradients,
    seeded,
    tiny,
    video,
)

WAYS = ("sbp", "full", "frozen", "frame_dropout", "checkpoint", "bank", "sbp_checkpoint")
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
    assert (
        furthest(
            Step(tiny(), video(9), "checkpoint", piece=2).gradients,
            full(tiny(), video(9)).gradients,
        )
        < 1e-13
    )


@pytest.mark.parametrize("way", ["checkpoint", "sbp_checkpoint"])
def test_hooks_are_called_once_a_step_with_checkpoints(way):
    encoder, calls = tiny(), []
    for parameter in encoder.parameters():
        parameter.register_post_accumulate_grad_hook(lambda _: calls.append(1))
    module = make_way(way, encoder, 0.8, piece=2)
    sum(module(video(n), generator=seeded()).sin().sum() for n in (7, 9, 4)).backward()
    assert len(calls) == 4


@pytest.mark.parametrize("ratio", [0.25, 0.6, 1.0, [0.2, 0.5, 0.8]])
def test_split_with_checkpoints_has_the_gradient_of_split(ratio):
    runs = []
    graphs = [0, 0]
    for place, way in enumerate(("sbp", "sbp_checkpoint")):
        encoder = tiny()
        step = Step(encoder, video(9), way, keep_ratio=ratio, execution="split", piece=2)
        runs.append(step)
        seen = []
        module = make_way(way, encoder, ratio, execution="split", piece=2)
        encoder[0].register_forward_hook(
            lambda _, __, output, seen=seen: seen.append(output.requires_grad)
        )
        features = module(video(9), generator=seeded())
        before = len(seen)
        features.sum().backward()
        graphs[place] = len(seen) - before
    assert furthest(runs[1].gradients, runs[0].gradients) < 1e-13
    assert graphs[0] == 0
    assert graphs[1] >= 1  # run again in backward


def test_frozen_makes_no_graph():
    features = make_way("frozen", tiny(), piece=2)(video(7))
    assert features.grad_fn is None
    assert furthest([features], [tiny()(video(7)).detach()]) < 1e-14


def test_frame_dropout_runs_kept_rows_alone_and_fills_the_gaps_on_straight_lines():
    encoder, run = tiny(), []
    encoder.register_forward_pre_hook(lambda _, inputs: run.append(len(inputs[0])))
    module = make_way("frame_dropout", encoder, 0.4, sampler="uniform_random")
    frames = video(10)
    for seed in range(5):
        features = module(frames, generator=seeded(seed)).detach()
        plain = tiny()(frames).detach()
        kept = [t for t in range(10) if torch.allclose(features[t], plain[t], atol=1e-12)]
        assert len(kept) == 4
        for channel in range(3):
            expected = np.interp(np.arange(10), kept, plain[kept, channel].numpy())
            np.testing.assert_allclose(features[:, channel].numpy(), expected, atol=1e-12)
    assert run == [4] * 5


def test_the_gradient_of_frame_dropout_is_that_of_its_own_loss():
    encoder, frames = tiny(), video(7)
    step = Step(encoder, frames, "frame_dropout", keep_ratio=0.5, gradient_weight="unbiased")
    moved = 1e-6 * torch.ones_like(encoder[0].weight)
    losses = []
    for sign in (1, -1):
        other = tiny()
        with torch.no_grad():
            other[0].weight += sign * moved
        losses.append(float(Step(other, frames, "frame_dropout", keep_ratio=0.5).loss))
    slope = (losses[0] - losses[1]) / 2e-6
    assert float(step.gradients[0].sum()) == pytest.approx(slope, rel=1e-5)


def bank_of(encoder, **how):
    module = make_way("bank", encoder, 0.3, **how)
    assert isinstance(module, FeatureBank)
    return module


def test_the_bank_gives_dropped_rows_the_features_of_the_step_that_last_kept_them():
    encoder, frames, run = tiny(), video(9), []
    module = bank_of(encoder, piece=4)
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
    state = module.state()
    assert set(state["features"]) == {"a", "b"}
    assert all(type(f) is torch.Tensor and not f.requires_grad for f in state["features"].values())
    other = bank_of(encoder)
    other.restore(state)
    found = [m(frames, generator=seeded(8), key="a").detach() for m in (module, other)]
    assert torch.equal(*found)
    module(frames, generator=seeded(9), key="a")
    assert torch.equal(other.state()["features"]["a"], found[1])  # each has its own
    with pytest.raises(ValueError, match=r"^the video 'b' has 9 rows, but the bank has 5"):
        module(frames, key="b")


def test_the_gradient_of_the_bank_is_that_of_its_kept_rows():
    frames, rows = video(9), row_gradients(tiny(), video(9))[0]
    how = {"keep_ratio": 1 / 3, "gradient_weight": "unbiased"}
    first = Step(tiny(), frames, "bank", **how)  # all rows are new, so it is split
    split = Step(tiny(), frames, execution="split", **how)
    assert furthest(first.gradients, split.gradients) < 1e-13
    assert float(flat(first.gradients).norm()) > 0
    assert rows.shape[0] == 9


def test_evaluation_neither_reads_nor_writes_the_bank():
    module = bank_of(tiny())
    with torch.no_grad():
        module(video(9), key="a")
    assert module.state() == {"features": {}}
