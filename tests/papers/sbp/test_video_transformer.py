"""The transformer on clips: its nodes, and what frames and patches that are dropped change."""

import pytest
import torch

from actionspan_papers.sbp.transformer import VideoTransformer


def make(**options):
    torch.manual_seed(0)
    small = {"frames": 4, "height": 16, "width": 24, "features": 8, "heads": 2, "layers": 3}
    return VideoTransformer(5, **{**small, "channels": 2, "top": 1, **options})


@pytest.fixture
def clips():
    return torch.randn(3, 4, 2, 16, 24, generator=torch.Generator().manual_seed(1))


def test_scores_of_each_clip(clips):
    network = make()
    assert network.grid == (4, 2, 3)
    assert network(clips).shape == (3, 5)
    torch.testing.assert_close(network(clips)[1:2], network(clips[1:2]))


def test_a_node_is_one_patch_of_one_frame_and_knows_its_position(clips):
    network = make()
    plain = network.nodes(clips)
    changed = clips.clone()
    changed[:, 2, :, 8:, 16:] += 1  # frame 2, the last patch
    different = (network.nodes(changed) != plain).any(dim=(0, 2)).nonzero().flatten()
    assert different.tolist() == [2 * 6 + 5]
    same = network.nodes(torch.zeros(1, 4, 2, 16, 24))[0]
    assert len({tuple(row) for row in same.tolist()}) == 24


def test_patches_may_hold_frames(clips):
    network = make(patch=(2, 8, 8))
    assert network.grid == (2, 2, 3)
    assert network(clips).shape == (3, 5)


def test_rows_of_frames_are_all_their_patches():
    rows = make().frame_nodes(torch.tensor([1, 3]))
    assert rows.tolist() == [*range(6, 12), *range(18, 24)]
    own = make().frame_nodes(torch.tensor([[0], [2]]))
    assert own.tolist() == [[*range(6)], [*range(12, 18)]]


def test_frames_that_are_left_out_change_nothing(clips):
    network = make()
    only = network.frame_nodes(torch.tensor([0, 2]))
    before = network(clips, only=only)
    other = clips.clone()
    other[:, [1, 3]] = 7.0
    assert torch.equal(network(other, only=only), before)
    assert not torch.allclose(network(other), network(clips))


def test_frames_whose_backward_path_is_dropped_are_still_seen(clips):
    network = make()
    kept = network.frame_nodes(torch.tensor([0, 2]))
    torch.testing.assert_close(network(clips, kept), network(clips))
    clips.requires_grad_()
    network(clips, kept).sum().backward()
    assert clips.grad[:, [1, 3]].abs().max() == 0
    assert clips.grad[:, [0, 2]].abs().max() > 0


def test_a_patch_that_does_not_fit_is_named():
    with pytest.raises(ValueError, match=r"patch \(1, 8, 8\): each number divides"):
        make(height=20)


@pytest.mark.parametrize("shape", [(3, 1, 16, 16), (4, 1, 24, 16), (4, 1, 20, 20), (4, 16, 16)])
def test_clips_of_another_shape_and_empty_patches_are_one_line(shape):
    how = {"height": 16, "width": 16, "features": 8, "heads": 2, "layers": 3, "top": 1}
    network = VideoTransformer(3, frames=4, patch=(1, 8, 8), **how)
    with pytest.raises(ValueError, match=r"^clips of shape \(2, .*\): \(B, \*\(4, 1, 16, 16\)\)$"):
        network(torch.randn(2, *shape))
    with pytest.raises(ValueError, match=r"^rows of nodes from 99"):
        network(torch.randn(2, 4, 1, 16, 16), only=torch.tensor([99]))
    with pytest.raises(ValueError, match=r"^patch \(0, 8, 8\): "):
        VideoTransformer(3, frames=4, patch=(0, 8, 8), **how)
