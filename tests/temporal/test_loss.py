"""The weighted loss: closed forms, the cases that are NaN elsewhere, gradients."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from actionspan.temporal import weighted_binary_loss
from actionspan.temporal.loss import EPSILON, boundary_loss


@given(st.integers(1, 19), st.integers(0, 2**31))
@settings(deadline=None)
def test_it_is_half_the_mean_over_positives_and_half_that_over_negatives(positives, seed):
    generator = torch.Generator().manual_seed(seed)
    probability = torch.rand(2, 10, generator=generator, dtype=torch.float64)
    label = torch.zeros(20, dtype=torch.float64)
    label[torch.randperm(20, generator=generator)[:positives]] = 1
    label = label.reshape(2, 10)
    hit = torch.log(probability[label == 1] + EPSILON).mean()
    miss = torch.log(1 - probability[label == 0] + EPSILON).mean()
    expected = -0.5 * (hit + miss)
    torch.testing.assert_close(weighted_binary_loss(probability, label), expected)


@pytest.mark.parametrize("positives", [5, 50, 95])
def test_one_half_everywhere_gives_log_2(positives):
    label = (torch.arange(100) < positives).float()
    loss = weighted_binary_loss(torch.full((100,), 0.5), label)
    assert loss.item() == pytest.approx(math.log(2), abs=3e-5)


def test_the_batch_is_one_set_not_a_mean_over_videos():
    probability = torch.tensor([[0.9, 0.8, 0.7, 0.6], [0.1, 0.2, 0.3, 0.4]])
    label = torch.tensor([[1.0, 1, 1, 0], [0, 0, 0, 0]])
    torch.testing.assert_close(
        weighted_binary_loss(probability, label),
        weighted_binary_loss(probability.flatten(), label.flatten()),
    )


@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_no_or_only_positives_give_a_number_and_a_gradient(value, p):
    # TRAP: with P = 0 or P = N the naive weights are infinite and the loss is NaN.
    probability = torch.full((4, 100), p, requires_grad=True)
    loss = weighted_binary_loss(probability, torch.full((4, 100), value))
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(probability.grad).all()


def test_the_ratio_is_held_within_its_range():
    # One positive of 1,000: r = 21 instead of 1,000, so it weighs 10.5 and a negative 0.525.
    label = (torch.arange(1000) < 1).double()
    loss = weighted_binary_loss(torch.full((1000,), 0.5, dtype=torch.float64), label)
    expected = -(10.5 + 999 * 0.525) / 1000 * math.log(0.5 + EPSILON)
    assert loss.item() == pytest.approx(expected, rel=1e-12)
    # All positive: r = 1.05, so each weighs 0.525.
    loss = weighted_binary_loss(torch.full((8,), 0.25, dtype=torch.float64), torch.ones(8))
    assert loss.item() == pytest.approx(-0.525 * math.log(0.25 + EPSILON), rel=1e-12)


def test_only_more_than_half_counts_as_positive():
    probability = torch.tensor([0.2, 0.6, 0.7])
    soft = weighted_binary_loss(probability, torch.tensor([0.5, 0.51, 1.0]))
    hard = weighted_binary_loss(probability, torch.tensor([0.0, 1.0, 1.0]))
    assert torch.equal(soft, hard)


@pytest.mark.parametrize("positives", [0, 1, 7, 12])
def test_the_gradient_is_that_of_finite_differences(positives):
    generator = torch.Generator().manual_seed(positives)
    probability = 0.05 + 0.9 * torch.rand(12, generator=generator, dtype=torch.float64)
    label = (torch.arange(12) < positives).double()
    assert torch.autograd.gradcheck(
        lambda p: weighted_binary_loss(p, label), probability.requires_grad_()
    )


def test_shapes_must_agree():
    with pytest.raises(ValueError, match=r"\(2,\).*\(3,\)"):
        weighted_binary_loss(torch.rand(2), torch.rand(3))
    with pytest.raises(ValueError, match="not empty"):
        weighted_binary_loss(torch.rand(0), torch.rand(0))


def test_the_total_counts_actionness_twice():
    generator = torch.Generator().manual_seed(3)
    probabilities = torch.rand(2, 10, 3, generator=generator)
    labels = (torch.rand(2, 10, 3, generator=generator) > 0.6).float()
    loss = boundary_loss(probabilities, labels)
    start, action, end = (
        weighted_binary_loss(probabilities[..., k], labels[..., k]) for k in range(3)
    )
    assert torch.equal(loss.start, start)
    assert torch.equal(loss.action, action)
    assert torch.equal(loss.end, end)
    torch.testing.assert_close(loss.total, 2 * action + start + end)
