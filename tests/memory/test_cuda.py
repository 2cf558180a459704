"""The same on a GPU: its own random numbers and autocast are restored in the second run."""

import pytest
import torch

from actionspan.memory.ways import FeatureBank, make_way
from memory.encoders import Step, dropping, full, furthest, seeded, tiny, video

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="torch sees no CUDA device on this machine"
)


@pytest.mark.parametrize("sampler", ["uniform_random", "importance", "diverse_feature"])
def test_replay_is_full_training_with_all_rows_kept(sampler):
    expected = full(tiny().cuda(), video(9).cuda())
    for ratio in (0.4, 1):
        step = Step(tiny().cuda(), video(9).cuda(), keep_ratio=ratio, sampler=sampler, piece=4)
        assert furthest([step.features], [expected.features]) < 1e-13
    assert furthest(step.gradients, expected.gradients) < 1e-12


@pytest.mark.parametrize(("way", "piece"), [("sbp", 3), ("checkpoint", 9), ("sbp_checkpoint", 9)])
def test_masks_of_the_gpu_are_drawn_again(way, piece):
    torch.manual_seed(0)
    frames, how = video(9).cuda(), {"keep_ratio": 1, "piece": piece}
    before = torch.cuda.get_rng_state()
    step = Step(dropping().cuda(), frames, way, **how)
    if way == "sbp":
        assert torch.equal(torch.cuda.get_rng_state(), before)
    losses = []
    for moved in (1e-6, -1e-6):
        other = dropping().cuda()
        with torch.no_grad():
            other[0].weight += moved
        torch.cuda.set_rng_state(before)
        losses.append(float(Step(other, frames, way, **how).loss))
    slope = (losses[0] - losses[1]) / 2e-6
    assert float(step.gradients[0].sum()) == pytest.approx(slope, rel=1e-4)


def test_autocast_of_the_gpu_is_restored():
    encoder, seen = tiny().float().cuda(), []
    encoder[2].register_forward_hook(lambda _, __, output: seen.append(output.dtype))
    module = make_way("sbp", encoder, 0.5, piece=3)
    with torch.autocast("cuda", torch.bfloat16):
        features = module(video(7).float().cuda(), generator=seeded())
    features.float().sin().sum().backward()
    assert set(seen) == {torch.bfloat16}
    assert all(parameter.grad is not None for parameter in encoder.parameters())


def test_a_bank_keeps_its_features_on_the_host():
    module, frames = make_way("bank", tiny().cuda(), 0.3), video(9).cuda()
    assert isinstance(module, FeatureBank)
    for _ in range(2):
        features = module(frames, generator=seeded(), key="a")
    assert features.is_cuda
    (kept,) = module.state()["features"].values()
    assert not kept.is_cuda
    assert torch.equal(kept, features.detach().cpu())
