"""Bytes saved for backward, and of living tensors, are counted to the byte, and as the ways say."""

import gc
import threading

import pytest
import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from actionspan.memory.counting import AllocatedBytes, saved_bytes
from actionspan.memory.ways import make_way
from actionspan.networks.architecture import architecture
from actionspan.temporal.mtn import MTN
from memory.encoders import image_network, seeded
from tiers import first_tier

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
NAMES = "efficientnet_lite0", "resnet18", "resnet50"
both_devices = pytest.mark.parametrize("device", ["cpu", "meta"])


def saves(network, rows, pixels):
    with saved_bytes(network) as counted:
        network(torch.empty(rows, 3, pixels, pixels, device="meta"))
    return counted.total


@pytest.mark.parametrize("name", first_tier(NAMES, "resnet18"))
def test_bytes_of_a_frame_are_the_published_ones(name):
    for folded in (False, True):
        network = image_network(name, folded=folded, classes=10).to("meta")
        for pixels in (112, 224):
            one, four = (saves(network, rows, pixels) for rows in (1, 4))
            expected = PUBLISHED[name, pixels][folded]
            assert (four - one) / 3 / MIB == pytest.approx(expected, rel=0.002)
    if name == "resnet50":  # the paper's forty gigabytes are its batch of frames
        network = image_network(name, folded=False, classes=10).to("meta")
        assert saves(network, 4 * 128, 224) / 2**30 == pytest.approx(41.0, abs=0.05)


@both_devices
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


@both_devices
def test_freed_tensors_no_longer_count(device):
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
        kept.append(x[:10].exp())
        assert (counted.live, counted.total) == (40, 12000)


def test_gradients_are_as_without_counting():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    x, weights = torch.randn(5, 3), list(network.parameters())
    plain = torch.autograd.grad(network(x).sum(), weights)
    with saved_bytes(network):
        counted = torch.autograd.grad(network(x).sum(), weights)
    assert all(map(torch.equal, plain, counted))


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


@both_devices
@pytest.mark.parametrize("again", ["function", "checkpoint"])
def test_a_second_run_in_backward_counts(device, again):
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


def test_hooks_are_as_before_after_an_error():
    before = saved_tensors_hooks.__enter__
    with pytest.raises(RuntimeError, match="stop"), saved_bytes():
        raise RuntimeError("stop")
    assert saved_tensors_hooks.__enter__ is before


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


@both_devices
def test_a_tensor_counts_while_it_is_alive(device):
    outside = torch.zeros(500, device=device)
    with AllocatedBytes() as counted:
        a = torch.zeros(1000, device=device)
        assert counted.live == 4000
        b = a[:10].view(2, 5)  # views
        a.add_(1)
        outside.mul_(2)  # in place
        c = outside[3:]  # a view of what was there
        assert counted.live == 4000
        d = a + 1
        assert counted.live == 8000
        del a
        assert counted.live == 8000  # b has its storage
        del b, d
        assert counted.live == 0
        e = torch.zeros(1, device=device).expand(1000)
        assert counted.live == 4
        f = torch.tensor([1.0, 2.0])
        assert counted.live == 12
    assert counted.peak == 8000
    del c, e, f


@both_devices
def test_temporaries_of_backward_are_seen(device):
    x = torch.ones(1000, device=device, requires_grad=True)
    with AllocatedBytes() as counted:
        y = x.exp().exp()  # both results are saved, the second is y
        assert counted.live == 8000
        y.backward(torch.ones_like(y))
        # ones, then the gradient of the first, then that of x; the gradient of x stays
        assert counted.peak >= 8000 + 2 * 4000
        del y
        assert counted.live == 4000


def test_both_devices_count_the_same():
    found = []
    for device in ("cpu", "meta"):
        network = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3, groups=8), nn.Flatten()
        ).to(device)
        x = torch.ones(4, 3, 16, 16, device=device)
        with AllocatedBytes() as counted:
            network(x[:2]).sum().backward()
            checkpoint(network, x, use_reentrant=False).square().sum().backward()
        found.append((counted.peak, counted.live, counted.largest, counted.peak_with_copies))
    assert found[0] == found[1]


def test_the_largest_call_and_the_copies_of_convolutions():
    with AllocatedBytes() as counted:
        a = torch.zeros(100, device="meta")
        torch.cat([a, a[:50]])
    assert counted.largest == 400 + 600  # read and made
    assert counted.peak_with_copies == counted.peak == 1000
    with AllocatedBytes() as counted:
        nn.functional.conv1d(
            torch.zeros(1, 1, 9, device="meta"), torch.zeros(1, 1, 1, device="meta")
        )
    assert counted.peak == 36 + 4 + 36
    assert counted.peak_with_copies == 2 * counted.peak


# Closed forms of the ways


class Video:
    """Rows of pictures, without memory."""

    def __init__(self, count, pixels):
        self.count, self.pixels = count, pixels

    def __len__(self):
        return self.count

    def __getitem__(self, rows):
        return torch.empty(len(rows), 3, self.pixels, self.pixels, device="meta")


class TemporalHead(nn.Module):
    """A temporal network over 100 steps, and the squares of its output."""

    def __init__(self, channels, count):
        super().__init__()
        self.resampling = torch.empty(100, count, device="meta")
        self.network = MTN(channels).to("meta")

    def forward(self, features):
        return self.network((self.resampling @ features)[None]).square().mean()


def encoder(name):
    """A folded encoder that learns, and its channels."""
    network, last = image_network(name), architecture(name).last
    channels = getattr(network, last).in_features
    setattr(network, last, nn.Identity())
    return network.to("meta"), channels


def saves_by(way, network, head, frames, ratio=1.0, **how):
    module = make_way(way, network, ratio, **how)
    with saved_bytes(network, head) as counted:
        head(module(frames, generator=seeded())).backward()
    assert counted.live == 0
    return counted.total


@pytest.mark.parametrize("pixels", first_tier([112, 224], 112))
@pytest.mark.parametrize("name", first_tier(NAMES, "resnet18"))
def test_split_saves_its_part_of_the_encoder_and_the_whole_head(name, pixels):
    count = 80
    network, channels = encoder(name)
    head = TemporalHead(channels, count)
    with saved_bytes(head) as above:
        head(torch.empty(count, channels, device="meta", requires_grad=True))
    full = saves_by("full", network, head, Video(count, pixels))
    for ratio in (1, 1 / 2, 1 / 4, 1 / 8):
        saved = saves_by("sbp", network, head, Video(count, pixels), ratio, execution="split")
        assert saved == pytest.approx(ratio * (full - above.total) + above.total, rel=0.005)


REPLAYED = ("resnet18", 1 / 4), ("plain", 1 / 4), ("plain", 1)


@pytest.mark.parametrize(("name", "ratio"), first_tier(REPLAYED, *REPLAYED[1:]))
def test_replay_saves_the_same_for_a_video_of_any_length(name, ratio):
    if name == "plain":
        layers = [nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        network, channels = nn.Sequential(*layers).to("meta"), 8
    else:
        network, channels = encoder(name)
    head, found = nn.Linear(channels, 1, device="meta"), []
    for count in (50, 1000):
        module = make_way("sbp", network, ratio, execution="replay", piece=5)
        with saved_bytes(network, head) as counted:
            head(module(Video(count, 64), generator=seeded()).mean(0)).sum().backward()
        found.append(counted.total)
    assert found[0] == found[1]
    assert found[0] > 5 * 3 * 64 * 64 * 4


def test_ways_in_order_of_the_bytes_that_they_save():
    network, channels = encoder("resnet18")
    frames, head = Video(40, 64), TemporalHead(channels, 40)
    full = saves_by("full", network, head, frames)
    found = {
        way: saves_by(way, network, head, frames, 1 / 4, piece=5, execution="split")
        for way in ("sbp", "frame_dropout", "checkpoint", "sbp_checkpoint", "frozen")
    }
    assert found["frozen"] == min(found.values())
    assert found["sbp"] == pytest.approx(found["frame_dropout"], rel=0.05)
    assert found["sbp"] < 0.4 * full
    assert found["checkpoint"] == pytest.approx(found["sbp_checkpoint"], rel=0.15)
    assert found["checkpoint"] < 0.6 * found["sbp"]
