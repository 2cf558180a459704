"""Bytes saved for backward are counted to the byte, and are those of the published table."""

import gc
import threading

import pytest
import torch
import torchvision
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from actionspan.memory.counting import saved_bytes
from actionspan.networks.efficientnet_lite0 import EfficientNetLite0
from actionspan.networks.weights import fold_batch_norms

MIB = 2**20
# MiB a frame: with norms in evaluation mode, and folded into the convolutions
PUBLISHED = {
    ("efficientnet_lite0", 112): (19.65, 13.05),
    ("efficientnet_lite0", 224): (75.80, 50.09),
    ("resnet18", 112): (5.35, 2.95),
    ("resnet18", 224): (21.15, 11.68),
    ("resnet50", 112): (20.76, 10.01),
    ("resnet50", 224): (81.92, 39.53),
}


def encoder(name, *, folded):
    """An encoder that learns, without memory."""
    if name == "efficientnet_lite0":
        network = EfficientNetLite0(3, 10)
    else:
        network = getattr(torchvision.models, name)(num_classes=10)
    network.eval()
    if folded:
        fold_batch_norms(network)
        network.requires_grad_(True)
    return network.to("meta")


def saves(network, rows, pixels):
    with saved_bytes(network) as counted:
        network(torch.empty(rows, 3, pixels, pixels, device="meta"))
    return counted.total


@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize(("name", "pixels"), PUBLISHED)
def test_bytes_of_a_frame_are_the_published_ones(name, pixels, folded):
    network = encoder(name, folded=folded)
    one, four = (saves(network, rows, pixels) for rows in (1, 4))
    published = PUBLISHED[name, pixels][folded]
    assert (four - one) / 3 / MIB == pytest.approx(published, rel=0.002)


def test_the_papers_forty_gigabytes_are_its_batch_of_frames():
    network = encoder("resnet50", folded=False)
    total = saves(network, 4 * 128, 224)
    assert total / 2**30 == pytest.approx(41.0, abs=0.05)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_each_storage_counts_once_and_parameters_do_not(device):
    layer = nn.Linear(4, 4, device=device)
    x = torch.ones(10, 4, device=device)
    with saved_bytes(layer) as counted:
        y = layer(x)  # saves x, and the weight
        assert counted.total == 10 * 4 * 4
        z = y.sigmoid()  # saves z
        assert counted.total == 2 * 10 * 4 * 4
        w = z[:5] * z[5:]  # two views of z: nothing new
        assert counted.total == 2 * 10 * 4 * 4
    with saved_bytes() as counted:
        layer(x.requires_grad_())
    assert counted.total == 10 * 4 * 4 + 4 * 4 * 4
    del w


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_what_is_freed_no_longer_counts(device):
    x = torch.ones(1000, device=device, requires_grad=True)
    with saved_bytes() as counted:
        for _ in range(3):
            (x.exp().sum()).backward()
        assert counted.live == 0
        assert counted.total == 4000
        kept = [x.exp() for _ in range(3)]
        assert counted.live == counted.total == 12000
        kept.clear()
        assert counted.live == 0


def test_gradients_are_as_without_counting():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    x = torch.randn(5, 3)
    network(x).sum().backward()
    plain = [p.grad.clone() for p in network.parameters()]
    network.zero_grad()
    with saved_bytes(network):
        network(x).sum().backward()
    assert all(torch.equal(a, p.grad) for a, p in zip(plain, network.parameters(), strict=True))


class Again(torch.autograd.Function):
    """Run a module without a graph, and with one in backward."""

    @staticmethod
    def forward(ctx, x, run):
        ctx.run = run
        ctx.save_for_backward(x)
        return run(x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            y = ctx.run(x)
        return torch.autograd.grad(y, x, gradient)[0], None


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("again", ["function", "checkpoint"])
def test_what_runs_again_in_backward_counts(device, again):
    def run(x):
        for _ in range(5):
            x = x.exp()
        return x

    x = torch.zeros(1000, device=device, requires_grad=True)
    with saved_bytes() as counted:
        twice = again == "checkpoint"
        y = checkpoint(run, x, use_reentrant=False) if twice else Again.apply(x, run)
        assert counted.total == 4000  # the input alone
        y.sum().backward()
        del y
        gc.collect()
    assert counted.total == 4000 + 5 * 4000
    assert counted.live == 0


def test_pieces_in_turn_need_the_bytes_of_one():
    network = encoder("resnet18", folded=True)
    rows = torch.empty(12, 3, 64, 64, device="meta")
    with saved_bytes(network) as counted:
        for piece in rows.split(3):
            network(piece).sum().backward()
    # a piece shares its storage with all rows, which are saved by the first layer
    inputs = rows.untyped_storage().nbytes()
    assert counted.total - inputs == pytest.approx(saves(network, 3, 64) - inputs // 4, rel=0.002)


def test_hooks_are_as_before_after_an_error():
    before = torch.autograd.graph.saved_tensors_hooks.__enter__
    with pytest.raises(RuntimeError, match="stop"), saved_bytes():
        raise RuntimeError("stop")
    assert torch.autograd.graph.saved_tensors_hooks.__enter__ is before
    x = torch.ones(2, requires_grad=True)
    assert isinstance(x.exp().grad_fn._saved_result, torch.Tensor)


def test_blocks_inside_each_other_count_both():
    layer, frames = nn.Linear(4, 4), torch.ones(8, 4)
    with saved_bytes(layer) as alone:
        kept = [layer(frames).tanh()]
    del kept[:]
    with saved_bytes(layer) as outer:
        kept.append(layer(frames).tanh())
        with saved_bytes(layer) as inner:
            kept.append(layer(2 * frames).tanh())
        kept.append(checkpoint(layer, 3 * frames, use_reentrant=False))
    assert inner.total == alone.total > 0
    assert outer.total >= 2 * alone.total
    del kept[:]
    assert outer.live == inner.live == 0


def test_blocks_of_threads_count_their_own_and_leave_nothing_behind():
    plain = saved_tensors_hooks.__enter__
    begun, ended, counts = threading.Event(), threading.Event(), []

    def other():
        with saved_bytes() as counted:
            begun.set()
            assert ended.wait(60)
            kept = torch.ones(100, requires_grad=True).exp()
        counts.append(counted.total)
        del kept

    thread = threading.Thread(target=other)
    with saved_bytes() as counted:
        thread.start()
        assert begun.wait(60)
        kept = torch.ones(10, requires_grad=True).exp()
    ended.set()
    thread.join()
    assert (counted.total, counts) == (40, [400])
    assert saved_tensors_hooks.__enter__ is plain
    del kept
