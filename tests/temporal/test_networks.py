"""The networks of steps: sizes, ranges and gradients of all, and forwards worked out by hand."""

import math

import pytest
import torch
from torch import nn

from actionspan.temporal import MTN, BaseTEM
from actionspan.temporal.mtn import (
    DILATIONS,
    HEADS,
    AttentionBlock,
    AttentionTEM,
    DilatedTEM,
    MultipathDenseNet,
    SqueezeExcitation,
    positions,
)
from actionspan.temporal.networks import build_model
from actionspan.temporal.settings import MODELS, TemporalSettings

DOUBLE = torch.float64
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


def dilated(channels=4, hidden=12) -> DilatedTEM:
    return DilatedTEM(channels, hidden=hidden, output_scale=1.0).double()


def attention(channels=5, hidden=32) -> AttentionTEM:
    return AttentionTEM(channels, hidden=hidden, output_scale=1.0).double()


def moved(model: nn.Module, steps: int, step: int, channels: int) -> list[int]:
    """Return the steps whose probabilities change with the features of one."""
    features = torch.randn(1, steps, channels, dtype=next(model.parameters()).dtype)
    changed = features.clone()
    changed[0, step] += 1
    return (model(features) != model(changed)).any(dim=2)[0].nonzero()[:, 0].tolist()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("batch", "steps", "channels"), [(1, 100, 401), (3, 17, 5)])
def test_probabilities_have_the_shape_and_range(name, batch, steps, channels):
    model = build_model(name, channels, TemporalSettings(hidden=32))
    probabilities = model(torch.randn(batch, steps, channels))
    assert probabilities.shape == (batch, steps, 3)
    assert 0 < probabilities.min() <= probabilities.max() < 1


@pytest.mark.parametrize("steps", [1, 2, 20, 2000])
@pytest.mark.parametrize("model", [dilated, attention])
def test_a_sequence_may_have_any_length(model, steps):
    with torch.inference_mode():
        probabilities = model(5, hidden=16).eval()(torch.randn(2, steps, 5, dtype=DOUBLE))
    assert probabilities.shape == (2, steps, 3)
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
    two, four = (BaseTEM(1, layers=count, hidden=1, output_scale=0.1) for count in (2, 4))
    fill(two, conv1__weight=2 * middle, conv2__weight=last)
    weights = {f"conv{n + 1}__weight": factor * middle for n, factor in enumerate((2, 3, 5))}
    fill(four, **weights, conv4__weight=last)
    for model, factor in ((two, 2), (four, 30)):
        expected = [[sigmoid(0.1 * w * factor * x) for w in (1, 2, -1)] for x in (0.5, 0.0)]
        given = model(torch.tensor([0.5, -4.0]).reshape(1, 2, 1))[0]  # relu(-4) = 0
        torch.testing.assert_close(given, torch.tensor(expected))


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


@pytest.mark.parametrize(("layers", "reach"), [(2, 1), (3, 2), (4, 3)])
def test_each_hidden_convolution_widens_the_view_by_one_step_to_each_side(layers, reach):
    model = BaseTEM(4, hidden=16, output_scale=1.0, layers=layers)
    assert moved(model, 20, 10, 4) == list(range(10 - reach, 10 + reach + 1))


def test_the_scale_stands_between_the_last_convolution_and_the_sigmoid():
    small, whole = (BaseTEM(4, hidden=8, output_scale=scale) for scale in (0.01, 1.0))
    whole.load_state_dict(small.state_dict())
    features = torch.randn(1, 20, 4)
    torch.testing.assert_close(small(features).logit(), 0.01 * whole(features).logit())


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
    model, features, order = (
        MultipathDenseNet(6, hidden=16),
        torch.randn(2, 10, 6),
        torch.randperm(10),
    )
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


def test_the_ablations_are_the_parts_of_mtn():
    kinds, found = (SqueezeExcitation, MultipathDenseNet), {}
    for name in ("origin", "se", "dense", "mtn"):
        parts = list(build_model(name, 5, TemporalSettings(hidden=16)).modules())
        found[name] = tuple(any(isinstance(part, kind) for part in parts) for kind in kinds)
    both = {"origin": (False, False), "se": (True, False), "dense": (False, True)}
    assert found == both | {"mtn": (True, True)}


def test_the_dilated_network_by_hand():
    # One channel, one map. Each layer adds its ReLU from `dilation` steps ago, so that an impulse
    # of 1 becomes the number of ways to reach a step by some of the dilations 1, 2, 4 and 8:
    # one way to each of 0…15.
    model = DilatedTEM(1, hidden=1, output_scale=0.1).double()
    fill(model)
    with torch.no_grad():
        model.first.weight[0, 0, 1] = 1
        for layer in model.layers.children():
            layer.get_parameter("weight")[0, 0, 0] = 1
        model.last.weight[:, 0, 0] = LAST
    features, maps = torch.zeros(1, 40, 1, dtype=DOUBLE), torch.zeros(40, dtype=DOUBLE)
    features[0, 10] = maps[10:26] = 3
    torch.testing.assert_close(model(features)[0], (0.1 * maps[:, None] * LAST).sigmoid())


def test_an_output_sees_sixteen_steps_to_each_side():
    reach = 1 + sum(DILATIONS)
    assert reach == 16
    model = dilated()
    assert moved(model, 80, 40, 4) == list(range(40 - 16, 40 + 16 + 1))
    # away from the ends outputs move with the features
    features = torch.randn(1, 100, 4, dtype=DOUBLE)
    for shift in (1, 13):
        whole, part = model(features), model(features[:, shift:])
        torch.testing.assert_close(part[:, reach:], whole[:, shift + reach :])


def test_layers_of_zero_pass_on_what_they_are_given():
    model, features = dilated(), torch.randn(1, 30, 4, dtype=DOUBLE)
    fill(model.layers)
    maps = model.first(features.transpose(1, 2)).relu()
    expected = model.last(maps).sigmoid().transpose(1, 2)
    torch.testing.assert_close(model(features), expected)


def test_the_gradient_reaches_every_parameter():
    model = dilated()
    model(torch.randn(2, 60, 4, dtype=DOUBLE)).square().sum().backward()
    assert len(model.layers) == len(DILATIONS)
    for name, parameter in model.named_parameters():
        assert (parameter.grad.abs() > 1e-12).all(), name
    model = attention()
    model(torch.randn(2, 20, 5, dtype=DOUBLE)).square().sum().backward()
    for name, parameter in model.named_parameters():
        grown = parameter.grad.abs()
        if name.endswith("attend.bias"):
            # a constant in all keys adds the same to all scores of a query: softmax ignores it
            width = len(grown) // 3
            assert grown[width : 2 * width].max() < 1e-12
            grown = torch.cat([grown[:width], grown[2 * width :]])
        # a ReLU may be off for all steps behind dense layers
        assert (grown.min() if name == "conv.weight" else grown.max()) > 1e-9, name


@pytest.mark.parametrize(("model", "hidden", "steps"), [(dilated, 3, 6), (attention, 8, 4)])
def test_its_gradient_is_that_of_finite_differences(model, hidden, steps):
    features = torch.randn(1, steps, 2, dtype=DOUBLE, requires_grad=True)
    assert torch.autograd.gradcheck(model(2, hidden), features)


def literal_block(block, steps):
    """The block for one sequence (T, D), head by head, step by step, as its paper defines it."""
    width = steps.shape[1]
    size = width // HEADS
    query, key, value = block.attend(block.norm1(steps)).split(width, dim=1)
    seen = torch.zeros_like(steps)
    for head in range(HEADS):
        part = slice(head * size, (head + 1) * size)
        for step in range(len(steps)):
            score = torch.stack([query[step, part] @ other[part] for other in key])
            weight = torch.softmax(score / math.sqrt(size), dim=0)
            seen[step, part] = sum(w * v[part] for w, v in zip(weight, value, strict=True))
    steps = steps + block.merge(seen)
    return steps + block.dense2(block.dense1(block.norm2(steps)).relu())


def test_a_block_is_the_softmax_over_all_pairs_of_steps_and_knows_no_order():
    block = AttentionBlock(8, dropout=0.0).double()
    for steps in (1, 7):
        given = torch.randn(2, steps, 8, dtype=DOUBLE)
        expected = torch.stack([literal_block(block, one) for one in given])
        torch.testing.assert_close(block(given), expected)
    given, order = torch.randn(1, 12, 8, dtype=DOUBLE), torch.randperm(12)
    torch.testing.assert_close(block(given[:, order]), block(given)[:, order])


def test_equal_scores_give_every_step_the_mean():
    block = AttentionBlock(4, dropout=0.0).double()
    fill(block, norm1__weight=torch.ones(4), merge__weight=torch.eye(4))
    with torch.no_grad():
        block.attend.weight[8:] = torch.eye(4)  # values as they come; queries and keys are zero
    given = torch.randn(1, 9, 4, dtype=DOUBLE)
    expected = given + block.norm1(given).mean(dim=1, keepdim=True)
    torch.testing.assert_close(block(given), expected)


def test_positions_are_sines_and_cosines_of_growing_wavelengths():
    code = positions(50, 6)
    for step in (0, 1, 49):
        for place in range(3):
            angle = step / 10000 ** (2 * place / 6)
            assert code[step, place].item() == pytest.approx(math.sin(angle), abs=1e-5)
            assert code[step, 3 + place].item() == pytest.approx(math.cos(angle), abs=1e-5)
    torch.testing.assert_close(positions(20, 6), code[:20], rtol=0, atol=0)


def test_every_step_sees_every_other_and_where_it_stands_and_no_other_video():
    model = attention()
    assert moved(model, 60, 0, 5) == list(range(60))
    inner = model(torch.zeros(1, 60, 5, dtype=DOUBLE))[
        0, 1:-1
    ]  # the convolution sees equal windows
    assert len(torch.unique(inner, dim=0)) == len(inner)
    features = torch.randn(3, 30, 5, dtype=DOUBLE)
    torch.testing.assert_close(model(features)[1:2], model(features[1:2]))


@pytest.mark.parametrize(("hidden", "width"), [(1, 4), (4, 4), (16, 8), (30, 12), (512, 256)])
def test_the_width_is_half_of_hidden_in_whole_heads(hidden, width):
    model = AttentionTEM(3, hidden=hidden)
    assert model.width == width
    assert model(torch.randn(1, 6, 3)).shape == (1, 6, 3)
