"""The weighted loss: closed forms, the cases that are NaN elsewhere, gradients."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from actionspan.temporal import weighted_binary_loss
from actionspan.temporal.loss import boundary_loss

DOUBLE = torch.float64
EPSILON = 1e-5  # inside the logarithms; not imported, so that a change of it is seen


@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_no_or_only_positives_give_a_number_and_a_gradient(value, p):
    # TRAP: with P = 0 or P = N the naive weights are infinite and the loss is NaN.
    probability = torch.full((4, 100), p, requires_grad=True)
    loss = weighted_binary_loss(probability, torch.full((4, 100), value))
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(probability.grad).all()


def test_only_more_than_half_counts_as_positive():
    probability = torch.tensor([0.2, 0.6, 0.7])
    soft = weighted_binary_loss(probability, torch.tensor([0.5, 0.51, 1.0]))
    hard = weighted_binary_loss(probability, torch.tensor([0.0, 1.0, 1.0]))
    assert torch.equal(soft, hard)


def test_shapes_must_agree():
    for one, two, message in ((2, 3, r"\(2,\).*\(3,\)"), (0, 0, "not empty")):
        with pytest.raises(ValueError, match=message):
            weighted_binary_loss(torch.rand(one), torch.rand(two))


def test_the_total_counts_actionness_twice():
    torch.manual_seed(3)
    probabilities, labels = torch.rand(2, 10, 3), (torch.rand(2, 10, 3) > 0.6).float()
    loss = boundary_loss(probabilities, labels)
    parts = (weighted_binary_loss(probabilities[..., k], labels[..., k]) for k in range(3))
    for found, expected in zip((loss.start, loss.action, loss.end), parts, strict=True):
        assert torch.equal(found, expected)
    torch.testing.assert_close(loss.total, 2 * loss.action + loss.start + loss.end)


def literal_loss(probability, label, whole=None):
    """The loss as its docstring has it."""
    probability = probability.flatten()
    positive = (label.flatten() > 0.5).to(probability.dtype)
    every = positive if whole is None else (whole > 0.5).to(probability.dtype)
    ratio = (every.numel() / every.sum().clamp(min=1.0)).clamp(1.05, 21.0)
    positive_weight = ratio / 2
    negative_weight = positive_weight / (ratio - 1)
    likelihood = positive_weight * positive * torch.log(probability + EPSILON)
    likelihood = likelihood + negative_weight * (1 - positive) * torch.log(
        1 - probability + EPSILON
    )
    return -likelihood.sum() / every.numel()


@given(st.integers(0, 300), st.integers(0, 2**31), st.booleans())
def test_the_bits_are_those_of_the_literal_form(positives, seed, shared):
    generator = torch.Generator().manual_seed(seed)
    label = torch.zeros(300)
    label[torch.randperm(300, generator=generator)[:positives]] = 1
    whole = (torch.rand(900, generator=generator) > 0.8).float() if shared else None
    grown = []
    for loss in (weighted_binary_loss, literal_loss):
        probability = torch.rand(300, generator=generator.manual_seed(seed)).requires_grad_()
        value = loss(probability, label, whole)
        value.backward()
        grown.append((value.detach(), probability.grad))
    assert all(map(torch.equal, *grown))


def test_the_shares_of_a_batch_add_up_to_it():
    torch.manual_seed(4)
    probabilities = torch.rand(6, 20, 3, dtype=DOUBLE)
    labels = (torch.rand(6, 20, 3, dtype=DOUBLE) > 0.7).double()
    whole = boundary_loss(probabilities, labels)
    parts = [
        boundary_loss(probabilities[rows], labels[rows], labels)
        for rows in (slice(0, 1), slice(1, 4), slice(4, 6))
    ]
    for total, *added in zip(whole, *parts, strict=True):
        torch.testing.assert_close(sum(added), total)
