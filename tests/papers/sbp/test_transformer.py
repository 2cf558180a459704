"""Transformers that drop backward paths, against plain layers and their gradients; their nodes."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from actionspan.memory.counting import saved_bytes
from actionspan_papers.sbp.transformer import (
    KeepGradient,
    TransformerEncoder,
    TransformerLayer,
    VideoTransformer,
    divide_nodes,
    put_together,
    take,
)

NODES, WIDTH, HEADS = 12, 16, 2
KEPT = torch.tensor([1, 4, 10])


def make(seed=0, layers=6, **options):
    torch.manual_seed(seed)
    return TransformerEncoder(WIDTH, HEADS, layers, **{"top": 2, **options}).double()


def nodes(seed=0, examples=2, count=NODES):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(examples, count, WIDTH, generator=generator, dtype=torch.float64)


def gradients(encoder, x, kept, weights):
    """The gradients of all parameters and of the input, for a loss that is linear in the output."""
    x = x.clone().requires_grad_()
    wanted = [x, *encoder.parameters()]
    return torch.autograd.grad((encoder(x, kept) * weights).sum(), wanted)


def inside(kept):
    """(n, 1) whether a node is kept."""
    return torch.isin(torch.arange(NODES), kept)[:, None]


def branches(layer):
    """Return attention and the dense layers of a plain layer, which are added to what enters."""

    def attention(x):
        seen = layer.norm1(x)
        q, k, v = (
            part.unflatten(2, (HEADS, -1)).transpose(1, 2)
            for part in (layer.query(seen), layer.key(seen), layer.value(seen))
        )
        scores = (q @ k.transpose(2, 3) / (WIDTH // HEADS) ** 0.5).softmax(dim=3)
        return layer.merge((scores @ v).transpose(1, 2).flatten(2))

    def dense(x):
        return layer.dense2(nn.functional.gelu(layer.dense1(layer.norm2(x))))

    return attention, dense


def oracle(encoder, x, kept):
    """The layers from plain ones: hooks zero what dropped nodes get, branches are cut."""
    own = inside(kept)
    for index, layer in enumerate(encoder.layers):
        below = index < encoder.sampled
        if below:
            x = x * 1
            x.register_hook(lambda gradient: torch.where(own, gradient, 0))
        for part in branches(layer):
            branch = part(x)
            x = x + (torch.where(own, branch, branch.detach()) if below else branch)
    return x


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_forward_pass_does_not_depend_on_what_is_kept(fused, dtype):
    encoder, x = make(fused=fused).to(dtype), nodes().to(dtype)
    near = {torch.float32: 2e-5, torch.float64: 1e-12}[dtype]
    plain = encoder(x)
    for kept in ([0, 5, 9], [3], list(range(11))):
        torch.testing.assert_close(encoder(x, torch.tensor(kept)), plain, rtol=near, atol=near)


@pytest.mark.parametrize("fused", [False, True])
def test_it_is_a_plain_transformer_whose_dropped_gradients_are_zeroed(fused):
    encoder, x, weights = make(fused=fused), nodes(), nodes(1)
    found = gradients(encoder, x, KEPT, weights)
    loss = (oracle(encoder, x.requires_grad_(), KEPT) * weights).sum()
    wanted = torch.autograd.grad(loss, [x, *encoder.parameters()])
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


def test_all_nodes_kept_is_the_plain_transformer_to_the_bit():
    encoder, x, weights = make(), nodes(), nodes(1)
    plain = gradients(encoder, x, None, weights)
    whole = gradients(encoder, x, torch.arange(NODES), weights)
    assert all(torch.equal(one, other) for one, other in zip(plain, whole, strict=True))


def test_top_layers_have_all_paths():
    encoder, x, weights = make(), nodes(), nodes(1)
    full = gradients(encoder, x, None, weights)
    found = gradients(encoder, x, torch.tensor([2, 7]), weights)
    top = len(list(encoder.layers[4:].parameters()))
    for one, other in zip(full[-top:], found[-top:], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)
    lower = zip(full[1:-top], found[1:-top], strict=True)
    assert all((one - other).norm() > 0.1 * one.norm() for one, other in lower if one.norm() > 1e-9)


def test_examples_may_keep_nodes_of_their_own():
    encoder, x, weights = make(), nodes(), nodes(1)
    rows = torch.tensor([[0, 3, 8], [2, 5, 11]])
    both = gradients(encoder, x, rows, weights)
    each = [gradients(encoder, x[i : i + 1], rows[i], weights[i : i + 1]) for i in range(len(rows))]
    torch.testing.assert_close(both[0], torch.cat([each[0][0], each[1][0]]))
    for ours, first, second in zip(both[1:], each[0][1:], each[1][1:], strict=True):
        torch.testing.assert_close(ours, first + second, rtol=1e-9, atol=1e-12)
    # and save no more for it
    layer = TransformerEncoder(32, 1, 1, top=0)
    x, shared = torch.randn(2, 392, 32, requires_grad=True), torch.arange(98) * 4
    one, own = (saved(layer, x, rows) for rows in (shared, torch.stack([shared, shared + 1])))
    assert own < 1.02 * one


def saved(layer, x, rows):
    """Bytes that a layer saves for its backward pass."""
    with saved_bytes(layer) as counted:
        output = layer(x, rows)
        del output
    return counted.total


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="top 7: from 0 to the 6 layers"):
        make(top=7)
    with pytest.raises(ValueError, match="width 16: must be a multiple of the 3 heads"):
        TransformerLayer(16, 3)


@given(st.integers(1, 12), st.integers(1, 4), st.booleans(), st.randoms(use_true_random=False))
def test_divided_nodes_come_back_in_their_places(count, examples, shared, random):
    """Rows are the same in all examples, or those of each its own."""
    size = random.randint(1, count)
    drawn = [random.sample(range(count), size) for _ in range(1 if shared else examples)]
    nodes, kept = torch.randn(examples, count, 2, 4), torch.tensor(drawn)
    rows = divide_nodes(kept[0] if shared else kept, count)
    assert torch.equal(rows.kept, (kept[0] if shared else kept).sort(dim=-1).values)
    both = torch.cat([rows.kept, rows.dropped], dim=-1).sort(dim=-1).values
    assert torch.equal(both, torch.arange(count).expand_as(both))
    taken = take(nodes, rows.kept)
    of_each = rows.kept.expand(examples, -1)
    assert all(torch.equal(t, n[k]) for t, n, k in zip(taken, nodes, of_each, strict=True))
    assert torch.equal(put_together(taken, take(nodes, rows.dropped), rows), nodes)


def test_the_gradient_of_dropped_nodes_is_zero_even_where_it_is_not_finite():
    nodes = torch.randn(2, 4, 3, requires_grad=True)
    passed = KeepGradient.apply(nodes, torch.tensor([[1], [3]]))
    assert torch.equal(passed, nodes)
    given, expected = torch.full((2, 4, 3), torch.inf), torch.zeros(2, 4, 3)
    for gradient in (given, expected):
        gradient[0, 1], gradient[1, 3] = 5.0, 7.0
    passed.backward(given)
    assert torch.equal(nodes.grad, expected)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([1.0], "float32 of shape"),
        ([], "of shape"),
        ([9], "from 9 to 9; they must be from 0 to 5"),
        ([-1, 2], "from -1 to 2; they must be"),
        ([1, 1], "one is there twice"),
        ([[1], [2], [3]], "of 3 examples: there are 2"),
    ],
)
def test_rows_that_are_refused(rows, message):
    encoder = TransformerEncoder(8, 2, 3, top=1)
    with pytest.raises(ValueError, match=f"^rows of nodes.*{message}") as error:
        encoder(torch.randn(2, 6, 8), torch.tensor(rows))
    assert "\n" not in str(error.value)


def make_video(**options):
    torch.manual_seed(0)
    small = {"frames": 4, "height": 16, "width": 24, "features": 8, "heads": 2, "layers": 3}
    return VideoTransformer(5, **{**small, "channels": 2, "top": 1, **options})


@pytest.fixture
def clips():
    return torch.randn(3, 4, 2, 16, 24, generator=torch.Generator().manual_seed(1))


def test_a_node_is_one_patch_of_one_frame_and_knows_its_position(clips):
    network, thick = make_video(), make_video(patch=(2, 8, 8))
    assert (network.grid, thick.grid) == ((4, 2, 3), (2, 2, 3))
    assert network(clips).shape == thick(clips).shape == (3, 5)
    torch.testing.assert_close(network(clips)[1:2], network(clips[1:2]))
    plain = network.nodes(clips)
    changed = clips.clone()
    changed[:, 2, :, 8:, 16:] += 1  # frame 2, the last patch
    different = (network.nodes(changed) != plain).any(dim=(0, 2)).nonzero().flatten()
    assert different.tolist() == [2 * 6 + 5]
    same = network.nodes(torch.zeros(1, 4, 2, 16, 24))[0]
    assert len({tuple(row) for row in same.tolist()}) == 24


def test_frames_that_are_left_out_change_nothing(clips):
    network = make_video()
    only = network.frame_nodes(torch.tensor([0, 2]))
    other = clips.clone()
    other[:, [1, 3]] = 7.0
    assert torch.equal(network(other, only=only), network(clips, only=only))
    assert not torch.allclose(network(other), network(clips))


def test_frames_whose_backward_path_is_dropped_are_still_seen(clips):
    network = make_video()
    kept = network.frame_nodes(torch.tensor([0, 2]))
    torch.testing.assert_close(network(clips, kept), network(clips))
    clips.requires_grad_()
    network(clips, kept).sum().backward()
    largest = [float(clips.grad[:, frame].abs().max()) for frame in range(4)]
    assert [value > 0 for value in largest] == [True, False, True, False]


def test_clips_rows_and_patches_that_do_not_fit_are_named(clips):
    for shape in ((3, 1, 16, 16), (4, 16, 16)):
        with pytest.raises(
            ValueError, match=r"^clips of shape \(2, .*\): \(B, \*\(4, 1, 16, 16\)\)$"
        ):
            make_video(width=16, channels=1, patch=(1, 8, 8))(torch.randn(2, *shape))
    with pytest.raises(ValueError, match=r"^rows of nodes from 99"):
        make_video()(clips, only=torch.tensor([99]))
    with pytest.raises(ValueError, match=r"^patch \(0, 8, 8\): "):
        make_video(patch=(0, 8, 8))
    with pytest.raises(ValueError, match=r"patch \(1, 8, 8\): each number divides"):
        make_video(height=20)
