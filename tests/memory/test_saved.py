"""What the ways save for backward is what their closed forms say."""

import pytest
import torch
import torchvision
from torch import nn

from actionspan.memory.counting import saved_bytes
from actionspan.memory.sampling import kept_count
from actionspan.memory.ways import make_way
from actionspan.networks.efficientnet_lite0 import EfficientNetLite0
from actionspan.networks.weights import fold_batch_norms
from actionspan.temporal.mtn import MTN
from tiers import first_tier


class Video:
    """Rows of pictures, without memory."""

    def __init__(self, count, pixels):
        self.count, self.pixels = count, pixels

    def __len__(self):
        return self.count

    def __getitem__(self, rows):
        return torch.empty(len(rows), 3, self.pixels, self.pixels, device="meta")


class Head(nn.Module):
    """A temporal network over 100 steps, and the squares of what it says."""

    def __init__(self, channels, count):
        super().__init__()
        self.resampling = torch.empty(100, count, device="meta")
        self.network = MTN(channels).to("meta")

    def forward(self, features):
        return self.network((self.resampling @ features)[None]).square().mean()


def encoder(name):
    """A folded encoder that learns, and its channels."""
    network = EfficientNetLite0(3, 10) if name == "efficientnet_lite0" else None
    network = network or getattr(torchvision.models, name)(num_classes=10)
    last = "_fc" if name == "efficientnet_lite0" else "fc"
    channels = getattr(network, last).in_features
    setattr(network, last, nn.Identity())
    fold_batch_norms(network.eval())
    return network.requires_grad_(True).to("meta"), channels


def saves(way, network, head, frames, ratio=1.0, **how):
    module = make_way(way, network, ratio, **how)
    with saved_bytes(network, head) as counted:
        head(module(frames, generator=torch.Generator().manual_seed(0))).backward()
    assert counted.live == 0
    return counted.total


def head_saves(head, channels, count):
    with saved_bytes(head) as counted:
        head(torch.empty(count, channels, device="meta", requires_grad=True))
    return counted.total


@pytest.mark.parametrize("pixels", first_tier([112, 224], 112))
@pytest.mark.parametrize("name", ["efficientnet_lite0", "resnet18", "resnet50"])
def test_split_saves_its_part_of_the_encoder_and_the_whole_head(name, pixels):
    count = 80
    network, channels = encoder(name)
    head = Head(channels, count)
    above = head_saves(head, channels, count)
    full = saves("full", network, head, Video(count, pixels))
    for ratio in (1, 1 / 2, 1 / 4, 1 / 8):
        saved = saves("sbp", network, head, Video(count, pixels), ratio, execution="split")
        assert saved == pytest.approx(ratio * (full - above) + above, rel=0.005)


@pytest.mark.full
def test_parts_of_full_training_are_the_published_ones():
    network, channels = encoder("efficientnet_lite0")
    frames, head = Video(100, 112), Head(channels, 100)
    full = saves("full", network, head, frames)
    for ratio, published in ((1 / 2, 0.5002), (1 / 4, 0.2503), (1 / 8, 0.1303)):
        part = saves("sbp", network, head, frames, ratio, execution="split") / full
        assert part == pytest.approx(published, abs=0.001)
    for ratio, longest in ((1, 8), (1 / 4, 7)):  # 25 rows are 7, 6, 6 and 6
        part = saves("sbp", network, head, frames, ratio, execution="replay", piece=8) / full
        assert part == pytest.approx(longest / 100, abs=0.0005)


@pytest.mark.parametrize(("name", "ratio"), [("resnet18", 1 / 4), ("plain", 1 / 4), ("plain", 1)])
def test_replay_saves_the_same_for_a_video_of_any_length(name, ratio):
    if name == "plain":
        layers = [nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        network, channels = nn.Sequential(*layers).to("meta"), 8
    else:
        network, channels = encoder(name)
    found = []
    for count in (50, 1000):
        head = nn.Linear(channels, 1, device="meta")
        module = make_way("sbp", network, ratio, execution="replay", piece=5)
        with saved_bytes(network, head) as counted:
            features = module(Video(count, 64), generator=torch.Generator().manual_seed(0))
            head(features.mean(0)).sum().backward()
        found.append(counted.total)
    assert found[0] == found[1]
    assert found[0] > 5 * 3 * 64 * 64 * 4


def test_ways_in_order_of_what_they_save():
    network, channels = encoder("resnet18")
    frames, head = Video(40, 64), Head(channels, 40)
    full = saves("full", network, head, frames)
    found = {
        way: saves(way, network, head, frames, 1 / 4, piece=5, execution="split")
        for way in ("sbp", "frame_dropout", "checkpoint", "sbp_checkpoint", "frozen")
    }
    assert found["frozen"] == min(found.values())
    assert found["sbp"] == pytest.approx(found["frame_dropout"], rel=0.05)
    assert found["sbp"] < 0.4 * full
    assert found["checkpoint"] == pytest.approx(found["sbp_checkpoint"], rel=0.15)
    assert found["checkpoint"] < 0.6 * found["sbp"]
    assert kept_count(40, 1 / 4) == 10


def test_counts_are_the_same_with_numbers_and_without():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.Flatten())
    frames = torch.randn(12, 3, 8, 8)
    for execution in ("split", "replay"):
        found = []
        for device in ("cpu", "meta"):
            module = make_way("sbp", network.to(device), 1 / 3, execution=execution, piece=2)
            video = frames.to(device)
            with saved_bytes(network) as counted:
                module(video, generator=torch.Generator().manual_seed(0)).sum().backward()
            found.append(counted.total)
            network = network.to_empty(device="cpu")
        assert found[0] == found[1]
