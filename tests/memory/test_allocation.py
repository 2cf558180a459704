"""The bytes of living tensors are those that a device would hold."""

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from actionspan.memory.counting import AllocatedBytes

DEVICES = ["cpu", "meta"]


@pytest.mark.parametrize("device", DEVICES)
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
        del b
        assert counted.live == 4000
        del d
        assert counted.live == 0
    assert counted.peak == 8000
    del c


def test_expanded_and_constant_tensors():
    with AllocatedBytes() as counted:
        a = torch.zeros(1).expand(1000)
        assert counted.live == 4
        b = torch.tensor([1.0, 2.0])
        assert counted.live == 12
    del a, b


@pytest.mark.parametrize("device", DEVICES)
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
    assert x.grad is not None


def test_both_devices_say_the_same():
    found = []
    for device in DEVICES:
        torch.manual_seed(0)
        network = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3, groups=8), nn.Flatten()
        ).to(device)
        x = torch.ones(4, 3, 16, 16, device=device)
        with AllocatedBytes() as counted:
            network(x[:2]).sum().backward()
            checkpoint(network, x, use_reentrant=False).square().sum().backward()
        found.append((counted.peak, counted.live, counted.largest))
    assert found[0] == found[1]


def test_without_a_graph_only_neighbouring_layers_are_alive():
    layers = nn.Sequential(*[nn.Linear(100, 100, bias=False, device="meta") for _ in range(10)])
    x = torch.zeros(50, 100, device="meta")
    with torch.no_grad(), AllocatedBytes() as counted:
        layers(x)
    assert counted.peak <= 3 * 50 * 100 * 4
    with AllocatedBytes() as graph:
        layers(x)
    assert graph.peak >= 10 * 50 * 100 * 4


def test_the_largest_call_reads_and_makes():
    with AllocatedBytes() as counted:
        a = torch.zeros(100, device="meta")
        torch.cat([a, a[:50]])
    assert counted.largest == 400 + 600
