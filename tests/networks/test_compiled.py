"""Compiled networks that are kept compute the same bits, and others are not taken for them."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from actionspan.features.encoders import build_network
from actionspan.networks import runtime
from actionspan.networks.architecture import Inputs, architecture
from actionspan.networks.compiled import network_digest
from actionspan.networks.runtime import OpenVino
from actionspan.storage.cache import read_cached, write_cached
from tiers import first_tier

pytest.importorskip("openvino")
CPU = torch.device("cpu")


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("ACTIONSPAN_CACHE", str(tmp_path))
    return tmp_path


@pytest.fixture
def converted(monkeypatch) -> list[int]:
    """Has an item for each network that is converted."""
    calls: list[int] = []
    convert = runtime._converted

    def counted(*given):
        calls.append(1)
        return convert(*given)

    monkeypatch.setattr(runtime, "_converted", counted)
    return calls


def made(name="resnet18", channels=3, size=32, seed=0, gain=1.0):
    torch.manual_seed(seed)
    parts = architecture(name)
    network = parts.build(channels, 7).eval().requires_grad_(False)
    return network, Inputs(parts, channels, CPU, gain), size


@pytest.mark.parametrize("channels", first_tier([3, 10], 3))
def test_kept_networks_compute_the_same_bits(channels, cache, converted, rng, monkeypatch):
    network, _ = build_network("efficientnet_lite0", None, channels, "pooled")
    given = network, Inputs(architecture("efficientnet_lite0"), channels, CPU), 64
    images = rng.integers(0, 256, (5, 64, 64, channels), np.uint8)
    first = OpenVino(*given)(images)
    assert len(converted) == 1
    kept = OpenVino(*given)
    np.testing.assert_array_equal(kept(images), first)
    assert len(converted) == 1
    monkeypatch.setenv("ACTIONSPAN_CACHE", "")
    np.testing.assert_array_equal(OpenVino(*given)(images), first)
    assert len(converted) == 2
    # on other threads what is kept is of no use
    monkeypatch.setenv("ACTIONSPAN_CACHE", str(cache))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        kept(images)
    finally:
        torch.set_num_threads(before)
    assert len(converted) == 3


def digest(network, inputs, size):
    return network_digest(network, inputs, (size, size, len(inputs.mean)))


def test_other_weights_inputs_layers_and_colours_have_another_digest():
    network, inputs, size = made()
    first = digest(network, inputs, size)
    assert first == digest(*made())
    others = [{"seed": 1}, {"size": 33}, {"name": "resnet34"}]
    others += [{"channels": 2}, {"channels": 2, "gain": 2.0}]
    found = [first, *(digest(*made(**other)) for other in others)]
    network.maxpool.padding = 0  # a setting of a layer without weights
    found.append(digest(network, inputs, size))
    inputs.bgr = True
    found.append(digest(network, inputs, size))
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("which", ["openvino", "processor", "instructions"])
def test_other_versions_and_machines_do_not_use_it(which, cache, converted, monkeypatch):
    OpenVino(*made())
    openvino, another = runtime.find_openvino(), lambda *_: "another"
    changes = {
        "openvino": (openvino, "__version__", "2030.1"),
        "processor": (openvino.Core, "get_property", another),
        "instructions": (torch.backends.cpu, "get_cpu_capability", another),
    }
    monkeypatch.setattr(*changes[which])
    OpenVino(*made())
    assert len(converted) == 2


class Doubled(nn.Module):
    """A layer that the package does not know."""

    def forward(self, images):
        return 2 * images


def test_a_network_with_layers_of_a_plug_in_is_not_kept(cache, converted, rng):
    network, *others = made()
    images = rng.integers(0, 256, (2, 32, 32, 3), np.uint8)
    plain = OpenVino(network, *others)(images)
    (kept,) = cache.iterdir()
    network.fc = nn.Sequential(network.fc, Doubled())
    found = [OpenVino(network, *others)(images) for _ in range(2)]
    assert len(converted) == 3
    assert list(cache.iterdir()) == [kept]
    np.testing.assert_allclose(found[1], 2 * plain, rtol=1e-4)


@pytest.mark.parametrize("content", [b"", b"no network", bytes(10_000), None])
def test_what_openvino_refuses_is_made_again(content, cache, converted, rng):
    """And what is damaged."""
    images = rng.integers(0, 256, (2, 32, 32, 3), np.uint8)
    first = OpenVino(*made())(images)
    (path,) = cache.iterdir()
    compiled = read_cached(path.stem)
    if content is None:
        with path.open("r+b") as file:
            file.seek(path.stat().st_size // 2)
            file.write(b"damaged")
    else:
        write_cached(path.stem, content)
    np.testing.assert_array_equal(OpenVino(*made())(images), first)
    assert len(converted) == 2
    # texts inside may differ by a byte from one compilation to the next
    assert len(read_cached(path.stem)) == pytest.approx(len(compiled), rel=1e-3)
