"""The nodes of a transformer: in two parts and back, and those of clips."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from actionspan_papers.sbp.transformer import (
    KeepGradient,
    TransformerEncoder,
    VideoTransformer,
    divide_nodes,
    put_together,
    take,
)


@given(st.integers(1, 20), st.data())
def test_divided_nodes_come_back_in_their_places(count, data):
    kept = torch.tensor(sorted(data.draw(st.sets(st.integers(0, count - 1), min_size=1))))
    nodes = torch.randn(3, count, 2, 4)
    rows = divide_nodes(kept, count)
    assert torch.equal(rows.kept, kept)
    assert sorted([*rows.kept.tolist(), *rows.dropped.tolist()]) == list(range(count))
    back = put_together(take(nodes, rows.kept), take(nodes, rows.dropped), rows)
    assert torch.equal(back, nodes)


@given(st.integers(1, 12), st.integers(1, 4), st.randoms(use_true_random=False))
def test_so_do_those_of_each_example_its_own(count, examples, random):
    size = random.randint(1, count)
    kept = torch.tensor([random.sample(range(count), size) for _ in range(examples)])
    nodes = torch.randn(examples, count, 5)
    rows = divide_nodes(kept, count)
    assert torch.equal(rows.kept, kept.sort(dim=1).values)
    taken = take(nodes, rows.kept)
    assert all(torch.equal(t, n[k]) for t, n, k in zip(taken, nodes, rows.kept, strict=True))
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


def make(**options):
    torch.manual_seed(0)
    small = {"frames": 4, "height": 16, "width": 24, "features": 8, "heads": 2, "layers": 3}
    return VideoTransformer(5, **{**small, "channels": 2, "top": 1, **options})


@pytest.fixture
def clips():
    return torch.randn(3, 4, 2, 16, 24, generator=torch.Generator().manual_seed(1))


def test_a_node_is_one_patch_of_one_frame_and_knows_its_position(clips):
    network, thick = make(), make(patch=(2, 8, 8))
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


def test_rows_of_frames_are_all_their_patches():
    rows = make().frame_nodes(torch.tensor([1, 3]))
    assert rows.tolist() == [*range(6, 12), *range(18, 24)]
    own = make().frame_nodes(torch.tensor([[0], [2]]))
    assert own.tolist() == [[*range(6)], [*range(12, 18)]]


def test_frames_that_are_left_out_change_nothing(clips):
    network = make()
    only = network.frame_nodes(torch.tensor([0, 2]))
    other = clips.clone()
    other[:, [1, 3]] = 7.0
    assert torch.equal(network(other, only=only), network(clips, only=only))
    assert not torch.allclose(network(other), network(clips))


def test_frames_whose_backward_path_is_dropped_are_still_seen(clips):
    network = make()
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
            make(width=16, channels=1, patch=(1, 8, 8))(torch.randn(2, *shape))
    with pytest.raises(ValueError, match=r"^rows of nodes from 99"):
        make()(clips, only=torch.tensor([99]))
    with pytest.raises(ValueError, match=r"^patch \(0, 8, 8\): "):
        make(patch=(0, 8, 8))
    with pytest.raises(ValueError, match=r"patch \(1, 8, 8\): each number divides"):
        make(height=20)
