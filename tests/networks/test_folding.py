"""Norms of all kinds are folded, and unfolded, or refused."""

import copy

import pytest
import torch
from torch import nn

from actionspan.networks.weights import fold_batch_norms, unfolded_state


def network(affine=True, bias=True, **how):
    torch.manual_seed(0)
    norm = nn.BatchNorm2d(4, affine=affine, **how)
    made = nn.Sequential(nn.Conv2d(3, 4, 3, bias=bias), norm)
    for values in norm.state_dict().values():
        if values.is_floating_point():
            values.uniform_(0.5, 2)
    return made.eval()


def folded(unfolded):
    made = copy.deepcopy(unfolded)
    assert fold_batch_norms(made) == 1
    return made


def test_the_type_is_kept_and_norms_without_running_statistics_are_refused():
    made = network().double()
    pictures = torch.randn(2, 3, 8, 8, dtype=torch.float64)
    torch.testing.assert_close(folded(made)(pictures), made(pictures), rtol=1e-13, atol=1e-13)
    message = "^the norm '1' has no running statistics: it cannot be folded$"
    with pytest.raises(ValueError, match=message):
        fold_batch_norms(network(track_running_stats=False))


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("eps", [1e-5, 1e-3, 0.1])
def test_saved_loaded_and_folded_again_the_bits_are_the_same(affine, bias, eps):
    first = folded(network(affine, bias, eps=eps))
    state = unfolded_state(first.state_dict(), network(affine, bias, eps=eps))
    second = network(affine, bias, eps=eps)
    missing, unexpected = second.load_state_dict(state, strict=False)
    assert unexpected == []
    assert set(missing) <= {"1.num_batches_tracked"}
    again = folded(second).state_dict()
    assert all(torch.equal(value, again[name]) for name, value in first.state_dict().items())
