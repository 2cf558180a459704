"""The dilated network: by hand, how far it sees, and that it moves with its features."""

import pytest
import torch

from actionspan.temporal.mtn import DILATIONS, DilatedTEM

REACH = 1 + sum(DILATIONS)  # steps to each side that an output sees


def network(channels=4, hidden=12, **options):
    torch.manual_seed(0)
    return DilatedTEM(channels, hidden=hidden, output_scale=1.0, **options).double()


def test_by_hand():
    # One channel, one map. Each layer adds its ReLU from `dilation` steps ago, so that an impulse
    # of 1 becomes the number of ways to reach a step by some of the dilations 1, 2, 4 and 8:
    # one way to each of 0…15.
    model = DilatedTEM(1, hidden=1, output_scale=0.1).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.first.weight[0, 0, 1] = 1
        for layer in model.layers.children():
            layer.get_parameter("weight")[0, 0, 0] = 1
        model.last.weight[:, 0, 0] = torch.tensor([1.0, 2.0, -1.0])
    features = torch.zeros(1, 40, 1, dtype=torch.float64)
    features[0, 10] = 3
    maps = torch.zeros(40, dtype=torch.float64)
    maps[10:26] = 3
    expected = (0.1 * maps[:, None] * torch.tensor([1.0, 2.0, -1.0])).sigmoid()
    torch.testing.assert_close(model(features)[0], expected)


def test_an_output_sees_sixteen_steps_to_each_side():
    assert REACH == 16
    model = network()
    features = torch.randn(1, 80, 4, dtype=torch.float64)
    changed = features.clone()
    changed[0, 40] += 1
    moved = (model(features) != model(changed)).any(dim=2)[0].nonzero()[:, 0].tolist()
    assert moved == list(range(40 - 16, 40 + 16 + 1))


@pytest.mark.parametrize("shift", [1, 13])
def test_away_from_the_ends_outputs_move_with_the_features(shift):
    model = network()
    features = torch.randn(1, 100, 4, dtype=torch.float64)
    whole, part = model(features), model(features[:, shift:])
    torch.testing.assert_close(part[:, REACH:], whole[:, shift + REACH :])


@pytest.mark.parametrize("steps", [1, 2, 20, 2000])
def test_a_sequence_may_have_any_length(steps):
    probabilities = network()(torch.randn(2, steps, 4, dtype=torch.float64))
    assert probabilities.shape == (2, steps, 3)
    assert probabilities.min() > 0
    assert probabilities.max() < 1


def test_layers_of_zero_pass_on_what_they_are_given():
    model = network()
    features = torch.randn(1, 30, 4, dtype=torch.float64)
    with torch.no_grad():
        for layer in model.layers:
            layer.weight.zero_()
            layer.bias.zero_()
    maps = model.first(features.transpose(1, 2)).relu()
    expected = model.last(maps).sigmoid().transpose(1, 2)
    torch.testing.assert_close(model(features), expected)


def test_the_gradient_reaches_every_parameter():
    model = network()
    model(torch.randn(2, 60, 4, dtype=torch.float64)).square().sum().backward()
    assert len(model.layers) == len(DILATIONS)
    for name, parameter in model.named_parameters():
        assert (parameter.grad.abs() > 1e-12).all(), name


def test_its_gradient_is_that_of_finite_differences():
    model = network(channels=2, hidden=3)
    features = torch.randn(1, 6, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(model, features)
