"""What stochastic backpropagation leaves as it is: the forward pass, and all above the encoder."""

import pytest
import torch

from actionspan.memory import StochasticBackward
from actionspan.memory.encoding import balanced
from memory.encoders import (
    WAYS,
    Step,
    equal,
    full,
    furthest,
    lite0,
    pictures,
    resnet18,
    seeded,
    tiny,
    video,
)
from tiers import first_tier

RATIOS = (0.1, 0.25, 0.6, 1.0, [0.2, 0.5, 0.8], [0.3, 1.0, 1.0])


@pytest.mark.parametrize(("sampler", "execution"), WAYS)
@pytest.mark.parametrize("count", first_tier([1, 2, 9], 1, 9))
def test_the_loss_and_all_above_the_encoder_are_those_of_full_training(count, sampler, execution):
    frames, expected = video(count), full(tiny(), video(count))
    for ratio in RATIOS:
        for piece in (1, 2, 4, 16):
            how = {"sampler": sampler, "execution": execution, "piece": piece}
            found = Step(tiny(), frames, keep_ratio=ratio, **how)
            assert furthest([found.features], [expected.features]) < 1e-14
            assert float((found.loss - expected.loss).abs()) < 1e-12
            assert furthest(found.head, expected.head) < 1e-12


@pytest.mark.parametrize("make", [lite0, resnet18])
def test_features_of_image_networks_are_those_of_full_training(make):
    encoder, frames = make(), pictures(7)
    expected = full(encoder, frames)
    replayed = None
    for sampler, execution in WAYS:
        for ratio in (0.1, 0.5) if sampler == "uniform_random" else (0.3,):
            how = {"sampler": sampler, "execution": execution, "piece": 3}
            found = Step(encoder, frames, keep_ratio=ratio, **how)
            torch.testing.assert_close(found.features, expected.features, rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(found.loss, expected.loss, rtol=1e-4, atol=1e-5)
            if execution == "replay":  # never depend on what is kept, to the bit
                replayed = found if replayed is None else replayed
                assert torch.equal(found.features, replayed.features)
                assert torch.equal(found.loss, replayed.loss)
                assert equal(found.head, replayed.head)


@pytest.mark.parametrize("make", [tiny, lite0, resnet18])
def test_split_with_all_rows_kept_is_plain_training_to_the_bit(make):
    encoder, frames = make(), video(7) if make is tiny else pictures(5)
    expected = full(encoder, frames)
    for weight in ("paper", "even", "unbiased"):
        found = Step(encoder, frames, keep_ratio=1, execution="split", gradient_weight=weight)
        assert torch.equal(found.features, expected.features)
        assert torch.equal(found.loss, expected.loss)
        assert equal(found.head, expected.head)
        assert equal(found.gradients, expected.gradients)


@pytest.mark.parametrize("make", [lite0, resnet18])
def test_replay_with_all_rows_kept_is_the_full_gradient(make):
    encoder, frames = make(), pictures(5)
    found = Step(encoder, frames, keep_ratio=1, piece=2)
    assert furthest(found.gradients, full(encoder, frames).gradients) < 1e-4


@pytest.mark.parametrize("weight", ["paper", "even", "unbiased"])
@pytest.mark.parametrize("sampler", ["uniform_random", "fixed", "diverse_feature", "checkerboard"])
@pytest.mark.parametrize("ratio", [0.25, 0.6, 1.0, [0.2, 0.5, 0.8], [0.3, 0.6, 1.0]])
def test_replay_and_split_have_the_same_gradient(ratio, sampler, weight):
    for count in (1, 7, 8):
        how = {"keep_ratio": ratio, "sampler": sampler, "gradient_weight": weight, "piece": 2}
        split = Step(tiny(), video(count), execution="split", **how)
        replayed = Step(tiny(), video(count), execution="replay", **how)
        assert furthest(replayed.gradients, split.gradients) < 1e-13


def test_weights_of_gradients_never_change_the_features_or_the_loss():
    frames = pictures(5).requires_grad_()
    for execution in ("split", "replay"):
        found = [
            Step(resnet18(), frames, keep_ratio=0.6, execution=execution, gradient_weight=weight)
            for weight in ("paper", "even", "unbiased")
        ]
        for other in found[1:]:
            assert torch.equal(other.features, found[0].features)
            assert torch.equal(other.loss, found[0].loss)
            assert equal(other.head, found[0].head)
            assert not equal(other.gradients, found[0].gradients)


@pytest.mark.parametrize("execution", ["split", "replay"])
@pytest.mark.parametrize("piece", [2, 3, 4, 16])
def test_no_row_is_run_alone_without_a_graph_unless_it_must_be(piece, execution):
    sizes = []
    encoder = tiny()
    encoder.register_forward_pre_hook(
        lambda _, inputs: sizes.append(len(inputs[0])) if not torch.is_grad_enabled() else None
    )
    for count in range(2, 12):
        # All rows but one are kept, then few, then none: in no case is one left over.
        for ratio in ((count - 1) / count, 0.3):
            spatial = StochasticBackward(encoder, ratio, execution=execution, piece=piece)
            spatial(video(count), generator=seeded())
        with torch.no_grad():
            StochasticBackward(encoder, 0.3, execution=execution, piece=piece)(video(count))
    assert min(sizes) == 2
    assert max(sizes) <= piece
    del sizes[:]
    StochasticBackward(encoder, 0.3, piece=piece)(video(1))
    assert sizes == [1]


def test_pieces_are_as_few_and_as_even_as_they_can_be():
    assert [len(part) for part in balanced(torch.arange(17), 16)] == [9, 8]
    assert [len(part) for part in balanced(torch.arange(16), 16)] == [16]
    assert [len(part) for part in balanced(torch.arange(7), 3)] == [3, 2, 2]
    assert balanced(torch.arange(0), 3) == ()


def test_without_a_gradient_nothing_is_drawn_and_no_graph_is_made():
    generator = seeded()
    before = generator.get_state()
    for execution in ("split", "replay"):
        spatial = StochasticBackward(tiny(), 0.3, execution=execution, piece=3)
        with torch.no_grad():
            features = spatial(video(7), generator=generator)
        assert not features.requires_grad
        frozen = StochasticBackward(tiny().requires_grad_(False), 0.3, execution=execution)
        assert not frozen(video(7), generator=generator).requires_grad
        assert furthest([features], [tiny()(video(7)).detach()]) < 1e-14
    assert torch.equal(generator.get_state(), before)
