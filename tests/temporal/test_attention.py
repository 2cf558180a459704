"""The attention network against a literal softmax over pairs, and at any length."""

import math

import pytest
import torch

from actionspan.temporal.mtn import HEADS, AttentionBlock, AttentionTEM, positions


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


@pytest.mark.parametrize("steps", [1, 7])
def test_a_block_is_the_softmax_over_all_pairs_of_steps(steps):
    torch.manual_seed(0)
    block = AttentionBlock(8, dropout=0.0).double()
    given = torch.randn(2, steps, 8, dtype=torch.float64)
    expected = torch.stack([literal_block(block, one) for one in given])
    torch.testing.assert_close(block(given), expected)


def test_a_block_knows_no_order():
    torch.manual_seed(1)
    block = AttentionBlock(8, dropout=0.0).double()
    given, order = torch.randn(1, 12, 8, dtype=torch.float64), torch.randperm(12)
    torch.testing.assert_close(block(given[:, order]), block(given)[:, order])


def test_equal_scores_give_every_step_the_mean():
    block = AttentionBlock(4, dropout=0.0).double()
    with torch.no_grad():
        for parameter in block.parameters():
            parameter.zero_()
        block.norm1.weight.fill_(1)
        block.attend.weight[8:] = torch.eye(4)  # values as they come; queries and keys are zero
        block.merge.weight.copy_(torch.eye(4))
    given = torch.randn(1, 9, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
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


@pytest.mark.parametrize("steps", [1, 2, 20, 2000])
def test_a_sequence_may_have_any_length(steps):
    torch.manual_seed(3)
    model = AttentionTEM(5, hidden=16, output_scale=1.0).eval()
    with torch.inference_mode():
        probabilities = model(torch.randn(1, steps, 5))
    assert probabilities.shape == (1, steps, 3)
    assert probabilities.min() > 0
    assert probabilities.max() < 1


def test_every_step_sees_every_other_and_where_it_stands():
    torch.manual_seed(4)
    model = AttentionTEM(5, hidden=32, output_scale=1.0).double()
    features = torch.randn(1, 60, 5, dtype=torch.float64)
    changed = features.clone()
    changed[0, 0] += 1
    assert (model(features) != model(changed)).all()
    same = model(torch.zeros(1, 60, 5, dtype=torch.float64))[0]
    inner = same[1:-1]  # the convolution sees equal windows there
    assert len(torch.unique(inner, dim=0)) == len(inner)


def test_a_video_does_not_look_at_others_of_its_batch():
    torch.manual_seed(5)
    model = AttentionTEM(5, hidden=16).double()
    features = torch.randn(3, 30, 5, dtype=torch.float64)
    torch.testing.assert_close(model(features)[1:2], model(features[1:2]))


@pytest.mark.parametrize(("hidden", "width"), [(1, 4), (4, 4), (16, 8), (30, 12), (512, 256)])
def test_the_width_is_half_of_hidden_in_whole_heads(hidden, width):
    model = AttentionTEM(3, hidden=hidden)
    assert model.width == width
    assert model(torch.randn(1, 6, 3)).shape == (1, 6, 3)


def test_the_gradient_reaches_every_parameter_but_the_bias_of_keys():
    torch.manual_seed(6)
    model = AttentionTEM(5, hidden=32, output_scale=1.0).double()
    model(torch.randn(2, 20, 5, dtype=torch.float64)).square().sum().backward()
    for name, parameter in model.named_parameters():
        moved = parameter.grad.abs()
        if name.endswith("attend.bias"):
            # a constant in all keys adds the same to all scores of a query: softmax ignores it
            keys = moved[model.width : 2 * model.width]
            assert keys.max() < 1e-12
            moved = torch.cat([moved[: model.width], moved[2 * model.width :]])
        if name != "conv.weight":  # a ReLU may be off for all steps behind dense layers
            assert moved.max() > 1e-9, name
        else:
            assert (moved > 1e-9).all(), name


def test_its_gradient_is_that_of_finite_differences():
    torch.manual_seed(7)
    model = AttentionTEM(2, hidden=8, output_scale=1.0).double()
    features = torch.randn(1, 4, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(model, features)
