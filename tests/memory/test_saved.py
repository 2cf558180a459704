"""The ways save for backward as many bytes as their closed forms say."""

import pytest
import torch
from torch import nn

from actionspan.memory.counting import saved_bytes
from actionspan.memory.ways import make_way
from actionspan.networks.architecture import architecture
from actionspan.temporal.mtn import MTN
from memory.encoders import EXECUTIONS, image_network, seeded
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


def saves(way, network, head, frames, ratio=1.0, **how):
    module = make_way(way, network, ratio, **how)
    with saved_bytes(network, head) as counted:
        head(module(frames, generator=seeded())).backward()
    assert counted.live == 0
    return counted.total


@pytest.mark.parametrize("pixels", first_tier([112, 224], 112))
@pytest.mark.parametrize("name", ["efficientnet_lite0", "resnet18", "resnet50"])
def test_split_saves_its_part_of_the_encoder_and_the_whole_head(name, pixels):
    count = 80
    network, channels = encoder(name)
    head = Head(channels, count)
    with saved_bytes(head) as above:
        head(torch.empty(count, channels, device="meta", requires_grad=True))
    full = saves("full", network, head, Video(count, pixels))
    for ratio in (1, 1 / 2, 1 / 4, 1 / 8):
        saved = saves("sbp", network, head, Video(count, pixels), ratio, execution="split")
        assert saved == pytest.approx(ratio * (full - above.total) + above.total, rel=0.005)


@pytest.mark.parametrize(("name", "ratio"), [("resnet18", 1 / 4), ("plain", 1 / 4), ("plain", 1)])
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


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_counts_are_the_same_with_numbers_and_without(execution):
    network = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.Flatten())
    found = []
    for device in ("cpu", "meta"):
        module = make_way("sbp", network.to(device), 1 / 3, execution=execution, piece=2)
        with saved_bytes(network) as counted:
            module(torch.ones(12, 3, 8, 8, device=device), generator=seeded()).sum().backward()
        found.append(counted.total)
    assert found[0] == found[1]
