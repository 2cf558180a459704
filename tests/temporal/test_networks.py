"""The networks of steps: sizes, ranges and gradients of all, and forwards worked out by hand."""

import math

import pytest
import torch
from torch import nn

from actionspan.temporal import MTN, BaseTEM
from actionspan.temporal.mtn import MultipathDenseNet, SqueezeExcitation
from actionspan.temporal.networks import build_model
from actionspan.temporal.settings import MODELS, TemporalSettings

LAST = torch.tensor([1.0, 2.0, -1.0])


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def fill(module: nn.Module, **values: torch.Tensor) -> None:
    """Set all parameters to 0 but those named, with __ for dots."""
    values = {name.replace("__", "."): value for name, value in values.items()}
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.zero_()
            if name in values:
                parameter.copy_(values.pop(name))
    assert not values


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("batch", "steps", "channels"), [(1, 100, 401), (3, 17, 5)])
def test_probabilities_have_the_shape_and_range(name, batch, steps, channels):
    model = build_model(name, channels, TemporalSettings(hidden=32))
    probabilities = model(torch.randn(batch, steps, channels))
    assert probabilities.shape == (batch, steps, 3)
    assert 0 < probabilities.min() <= probabilities.max() < 1


@pytest.mark.parametrize("name", MODELS)
def test_dropout_acts_in_training_alone(name):
    model = build_model(name, 5, TemporalSettings(hidden=16, dropout=0.5, output_scale=1.0))
    features = torch.randn(1, 10, 5)
    assert not torch.equal(model(features), model(features))
    model.eval()
    assert torch.equal(model(features), model(features))


@pytest.mark.parametrize("channels", [256, 400])
def test_the_number_of_parameters_is_that_of_the_paper(channels):
    hidden = 512
    conv = (3 * channels + 1) * hidden + (3 * hidden + 1) * hidden + (hidden + 1) * 3
    at_512 = (hidden + 1) * 32 + (32 + 1) * hidden  # reduction 16
    at_3 = 2 * (3 + 1) * 3  # reduction 1
    dense = (channels + 1) * hidden + (hidden + 1) * hidden + (hidden + 1) * 3
    expected = {
        "origin": conv,
        "se": conv + 2 * at_512 + at_3,
        "dense": conv + dense,
        "mtn": conv + 2 * at_512 + at_3 + dense,
        "cnn2": conv - (3 * hidden + 1) * hidden,
        "cnn4": conv + (3 * hidden + 1) * hidden,
    }
    for name, count in expected.items():
        model = build_model(name, channels, TemporalSettings())
        assert sum(p.numel() for p in model.parameters()) == count, name


def test_squeeze_excitation_by_hand():
    block = SqueezeExcitation(2, reduction=1)
    fill(
        block,
        squeeze__weight=torch.tensor([[1.0, 0.0], [0.0, -1.0]]),
        excite__weight=torch.tensor([[2.0, 1.0], [0.0, 1.0]]),
        excite__bias=torch.tensor([0.0, 0.5]),
    )
    maps = torch.tensor([[[1.0, 2.0, 3.0], [4.0, 4.0, 4.0]]])
    # Means 2 and 4; squeezed relu(2) = 2 and relu(-4) = 0; gates sigmoid(4) and sigmoid(0.5).
    expected = torch.stack([maps[0, 0] * sigmoid(4.0), maps[0, 1] * sigmoid(0.5)])
    torch.testing.assert_close(block(maps)[0], expected)
    block, maps = SqueezeExcitation(3, reduction=1), torch.randn(2, 3, 8)
    torch.testing.assert_close(block(maps)[:1], block(maps[:1]))  # its own video alone


def test_the_base_network_by_hand():
    # One channel, one map: conv1 adds the neighbours, conv2 passes on, conv3 is (1, 2, -1)·map.
    model, last = BaseTEM(1, hidden=1, output_scale=0.1), LAST.reshape(3, 1, 1)
    middle = torch.tensor([[[0.0, 1.0, 0.0]]])
    fill(model, conv1__weight=torch.ones(1, 1, 3), conv2__weight=middle, conv3__weight=last)
    features = torch.tensor([1.0, 2.0, -5.0, 4.0]).reshape(1, 4, 1)
    sums = [3.0, 0.0, 1.0, 0.0]  # 0+1+2, relu(1+2-5), 2-5+4, relu(-5+4+0)
    expected = [[sigmoid(0.1 * weight * x) for weight in (1, 2, -1)] for x in sums]
    torch.testing.assert_close(model(features)[0], torch.tensor(expected))
    # Two and four convolutions, with kernels of 2, 3 and 5 times the middle of the window.
    for factors in ((2,), (2, 3, 5)):
        factor, count = math.prod(factors), len(factors) + 1
        model = BaseTEM(1, layers=count, hidden=1, output_scale=0.1)
        weights = {f"conv{n}__weight": each * middle for n, each in enumerate(factors, 1)}
        fill(model, **weights, **{f"conv{count}__weight": last})
        expected = [[sigmoid(0.1 * w * factor * x) for w in (1, 2, -1)] for x in (0.5, 0.0)]
        given = model(torch.tensor([0.5, -4.0]).reshape(1, 2, 1))[0]  # relu(-4) = 0
        torch.testing.assert_close(given, torch.tensor(expected))


@pytest.mark.parametrize(("layers", "reach"), [(2, 1), (3, 2), (4, 3)])
def test_each_hidden_convolution_widens_the_view_by_one_step_to_each_side(layers, reach):
    model = BaseTEM(4, hidden=16, output_scale=1.0, layers=layers)
    features = torch.randn(1, 20, 4)
    changed = features.clone()
    changed[0, 10] += 1
    moved = (model(features) != model(changed)).any(dim=2)[0].nonzero()[:, 0]
    assert moved.tolist() == list(range(10 - reach, 10 + reach + 1))


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("origin", ["conv1", "conv2", "conv3"]),
        ("se", ["conv1", "conv2", "conv3", "se1", "se2", "se3"]),
        ("cnn2", ["conv1", "conv2"]),
        ("cnn4", ["conv1", "conv2", "conv3", "conv4"]),
    ],
)
def test_files_of_before_name_their_parts_as_ever(name, parts):
    built = build_model(name, 5, TemporalSettings(hidden=16)).state_dict()
    assert list(dict.fromkeys(key.split(".")[0] for key in built)) == parts


@pytest.mark.parametrize("squeeze", [False, True])
def test_the_first_weights_are_drawn_in_the_order_of_before(squeeze):
    built = BaseTEM(5, hidden=16, squeeze=squeeze)
    torch.manual_seed(0)
    drawn = [nn.Conv1d(5, 16, 3), nn.Conv1d(16, 16, 3), nn.Conv1d(16, 3, 1)]
    if squeeze:
        drawn += [SqueezeExcitation(16, 16), SqueezeExcitation(16, 16), SqueezeExcitation(3, 1)]
    expected = [weight for part in drawn for weight in part.state_dict().values()]
    given = list(built.state_dict().values())
    assert all(torch.equal(one, two) for one, two in zip(given, expected, strict=True))


def test_the_last_gate_works_on_the_scaled_scores_before_the_sigmoid():
    model = BaseTEM(2, hidden=4, output_scale=0.5, squeeze=True)
    excite = torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 0, 9]])
    bias = torch.tensor([2.0, 4.0, -6.0])
    fill(model, conv3__bias=bias, se3__squeeze__weight=torch.eye(3), se3__excite__weight=excite)
    # Scores 1, 2 and -3; their means squeezed to 1, 2 and 0; gates of 0, 1 and 0.
    gates = [sigmoid(0.0), sigmoid(1.0), sigmoid(0.0)]
    expected = [sigmoid(gate * x) for gate, x in zip(gates, (1.0, 2.0, -3.0), strict=True)]
    torch.testing.assert_close(model(torch.randn(1, 5, 2)), torch.tensor(expected).expand(1, 5, 3))


def test_the_dense_network_sees_each_vector_alone_and_its_outputs_compete():
    model = MultipathDenseNet(6, hidden=16)
    features, order = torch.randn(2, 10, 6), torch.randperm(10)
    probabilities = model(features)
    torch.testing.assert_close(model(features[:, order]), probabilities[:, order])
    torch.testing.assert_close(probabilities.sum(dim=2), torch.ones(2, 10))


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("squeeze", [False, True])
def test_mtn_is_the_weighted_sum_of_its_two_paths(weight, squeeze):
    model = MTN(6, hidden=16, fusion_weight=weight, squeeze=squeeze)
    features = torch.randn(2, 10, 6)
    expected = weight * model.conv_net(features) + (1 - weight) * model.dense_net(features)
    assert torch.equal(model(features), expected)
