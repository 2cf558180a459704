import numpy as np
import pytest
import torch
from torch import nn

from actionspan_papers.sbp.draws import apart, block_grams, cosines, products, sampled


def chain():
    torch.manual_seed(2)
    return [
        nn.Sequential(
            nn.Conv2d(2, 4, 3, stride=2, bias=False), nn.BatchNorm2d(4).eval(), nn.ReLU()
        ),
        nn.Sequential(nn.ReLU(), nn.Flatten()),  # a block without parameters
        nn.Linear(36, 3),
    ]


def by_definition(blocks, inputs, gradients):
    """(T, P) each snippet's gradient of all parameters, by one backward pass each."""
    parameters = [each for block in blocks for each in block.parameters()]
    rows = []
    for row in range(len(inputs)):
        features = nn.Sequential(*blocks)(inputs)
        found = torch.autograd.grad((features[row] * gradients[row]).sum(), parameters)
        rows.append(torch.cat([each.flatten() for each in found]))
    return torch.stack(rows)


def test_products_are_those_of_the_whole_gradients():
    blocks, inputs, gradients = chain(), torch.randn(5, 2, 8, 8), torch.randn(5, 3)
    grams = block_grams(blocks, inputs, gradients)
    whole = by_definition(blocks, inputs, gradients).double()
    summed = sum(gram.parameter_gradients for gram in grams)
    np.testing.assert_allclose(summed, (whole @ whole.T).numpy(), rtol=1e-5, atol=1e-6)
    assert not grams[1].parameter_gradients.any()
    np.testing.assert_allclose(grams[2].activation_gradients, products(gradients))
    np.testing.assert_allclose(
        grams[2].activations, products(nn.Sequential(*blocks)(inputs)), rtol=1e-5
    )
    # what goes into a block is what comes out of the one below
    np.testing.assert_allclose(
        grams[0].activation_gradients.diagonal()[0],
        _gradient_below(blocks, inputs, gradients).square().sum().item(),
        rtol=1e-5,
    )


def _gradient_below(blocks, inputs, gradients):
    below = blocks[0](inputs[:1]).detach().requires_grad_()
    (blocks[2](blocks[1](below)) * gradients[:1]).sum().backward()
    return below.grad


def test_frozen_parameters_have_no_part():
    blocks, inputs, gradients = chain(), torch.randn(3, 2, 8, 8), torch.randn(3, 3)
    blocks[0].requires_grad_(False)
    grams = block_grams(blocks, inputs, gradients)
    assert not grams[0].parameter_gradients.any()
    assert grams[2].parameter_gradients.any()


def test_a_sum_of_some_gradients_is_compared_with_the_sum_of_all():
    gradients = np.random.default_rng(4).normal(size=(6, 40))
    weights = np.array([[2.0, 0, 0, 3, 0, 0], [1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0]])
    cosine, error = sampled(gradients @ gradients.T, weights)
    full = gradients.sum(axis=0)
    one = 2 * gradients[0] + 3 * gradients[3]
    assert cosine[0] == pytest.approx(one @ full / np.linalg.norm(one) / np.linalg.norm(full))
    assert error[0] == pytest.approx(((one - full) ** 2).sum() / (full**2).sum())
    assert (cosine[1], error[1]) == (pytest.approx(1), pytest.approx(0, abs=1e-12))
    assert np.isnan(cosine[2])
    assert error[2] == pytest.approx(1)


def test_cosines_and_pairs():
    gram = np.array([[4.0, 2, 0], [2, 1, 0], [0, 0, 0]])
    found = cosines(gram)
    assert found[0, 1] == pytest.approx(1)
    assert np.isnan(found[2]).all()
    neighbours, distant = apart(6)
    assert np.argwhere(neighbours).tolist() == [[t + 1, t] for t in range(5)]
    assert {t - s for t, s in np.argwhere(distant)} == {3, 4, 5}
    # of very few snippets neighbours are not distant
    assert not (apart(2)[1]).any()
    assert not (apart(1)[0]).any()


def test_what_does_not_fit_is_named():
    with pytest.raises(ValueError, match="0 blocks: 1 at least"):
        block_grams([], torch.zeros(2, 3), torch.zeros(2, 3))
    with pytest.raises(ValueError, match=r"gradients \(2, 4\) of features \(2, 3\)"):
        block_grams(chain(), torch.zeros(2, 2, 8, 8), torch.zeros(2, 4))
