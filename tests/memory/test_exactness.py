"""What stochastic backpropagation leaves as it is: the forward pass, and all above the encoder."""

import itertools

import pytest
import torch
from torch import nn

from actionspan.memory import StochasticBackward
from actionspan.memory.encoding import balanced
from memory.encoders import (
    EXECUTIONS,
    SPLIT_SAMPLERS,
    WAYS,
    WEIGHTS,
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
both = pytest.mark.parametrize("execution", EXECUTIONS)


@pytest.mark.parametrize(("sampler", "execution"), WAYS)
@pytest.mark.parametrize("count", first_tier([1, 2, 9], 9))
def test_the_loss_and_all_above_the_encoder_are_those_of_full_training(count, sampler, execution):
    frames, expected = video(count), full(tiny(), video(count))
    for number, (ratio, piece) in enumerate(itertools.product(RATIOS, (1, 2, 4, 16))):
        weight = WEIGHTS[number % 3]
        how = {"sampler": sampler, "execution": execution, "gradient_weight": weight}
        found = Step(tiny(), frames, keep_ratio=ratio, piece=piece, **how)
        assert furthest([found.features], [expected.features]) < 1e-14
        assert float((found.loss - expected.loss).abs()) < 1e-12
        assert furthest(found.head, expected.head) < 1e-12


def same_bits(found, expected):
    """Whether the features, the loss and the gradients above the encoder are the same."""
    values = ((each.features, each.loss, *each.head) for each in (found, expected))
    return equal(*map(list, values))


@pytest.mark.full
@pytest.mark.parametrize("make", first_tier([lite0, resnet18], lite0))
def test_features_of_image_networks_are_those_of_full_training(make):
    encoder, frames = make(), pictures(7)
    expected = full(encoder, frames)
    replayed = []
    for sampler, execution in WAYS:
        for ratio in (0.1, 0.5) if sampler == "uniform_random" else (0.3,):
            how = {"sampler": sampler, "execution": execution, "piece": 3}
            found = Step(encoder, frames, keep_ratio=ratio, **how)
            torch.testing.assert_close(found.features, expected.features, rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(found.loss, expected.loss, rtol=1e-4, atol=1e-5)
            if execution == "replay":  # never depend on what is kept, to the bit
                replayed.append(found)
    assert all(same_bits(each, replayed[0]) for each in replayed)
    every = Step(encoder, frames, keep_ratio=1, piece=2)
    assert furthest(every.gradients, expected.gradients) < 1e-4


@pytest.mark.parametrize("make", first_tier([tiny, lite0, resnet18], tiny, lite0))
def test_split_with_all_rows_kept_is_plain_training_to_the_bit(make):
    encoder, frames = make(), video(7) if make is tiny else pictures(5)
    expected = full(encoder, frames)
    for weight in WEIGHTS:
        found = Step(encoder, frames, keep_ratio=1, execution="split", gradient_weight=weight)
        assert same_bits(found, expected)
        assert equal(found.gradients, expected.gradients)


@pytest.mark.parametrize("weight", first_tier(WEIGHTS, WEIGHTS[-1]))
@pytest.mark.parametrize("sampler", SPLIT_SAMPLERS)
def test_replay_and_split_have_the_same_gradient(sampler, weight):
    for ratio in (0.25, 0.6, 1.0, [0.2, 0.5, 0.8], [0.3, 0.6, 1.0]):
        for count in (1, 7, 8):
            how = {"keep_ratio": ratio, "sampler": sampler, "gradient_weight": weight, "piece": 2}
            split, replayed = (
                Step(tiny(), video(count), execution=each, **how).gradients for each in EXECUTIONS
            )
            assert furthest(replayed, split) < 1e-13


@both
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
    for count, piece, sizes in ((17, 16, [9, 8]), (16, 16, [16]), (7, 3, [3, 2, 2]), (0, 3, [])):
        assert [len(part) for part in balanced(torch.arange(count), piece)] == sizes


@both
def test_without_a_gradient_nothing_is_drawn_and_no_graph_is_made(execution):
    generator = seeded()
    before = generator.get_state()
    spatial = StochasticBackward(tiny(), 0.3, execution=execution, piece=3)
    with torch.no_grad():
        features = spatial(video(7), generator=generator)
    assert not features.requires_grad
    assert furthest([features], [tiny()(video(7)).detach()]) < 1e-14
    frozen = StochasticBackward(tiny().requires_grad_(False), 0.3, execution=execution)
    assert not frozen(video(7), generator=generator).requires_grad
    assert torch.equal(generator.get_state(), before)


@both
def test_a_part_that_comes_twice_is_run_twice(execution):
    torch.manual_seed(0)
    tanh = nn.Tanh()
    encoder = nn.Sequential(nn.Linear(5, 4), tanh, nn.Linear(4, 3), tanh).double()
    plain, how = full(encoder, video(8)), {"execution": execution, "piece": 3}
    some = Step(encoder, video(8), keep_ratio=[0.25, 0.25, 0.5, 0.5], **how)
    assert furthest([some.features], [plain.features]) < 1e-13
    last = Step(encoder, video(8), keep_ratio=[0.5, 1.0, 1.0, 1.0], **how)
    assert furthest(last.gradients[2:], plain.gradients[2:]) < 1e-13


def test_pieces_without_a_row_that_has_a_graph_add_nothing():
    how = {"keep_ratio": [0.25, 1.0], "piece": 2}
    split, replayed = (
        Step(tiny()[:2], video(8), execution=each, **how).gradients for each in EXECUTIONS
    )
    assert furthest(replayed, split) < 1e-13
