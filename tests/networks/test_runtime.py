"""OpenVINO gives the vectors of eager PyTorch; compiled networks are kept for the same ones."""

import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from torch import nn

from actionspan.features.encoders import build_network
from actionspan.networks import runtime
from actionspan.networks.architecture import Inputs, architecture
from actionspan.networks.compiled import network_digest
from actionspan.networks.runtime import Eager, NotConverted, OpenVino, openvino_computes
from actionspan.networks.weights import fold_batch_norms
from actionspan.storage.cache import read_cached, write_cached
from networks.tiny import TINY_NETWORK
from tiers import first_tier

pytest.importorskip("openvino")
CPU = torch.device("cpu")


def both(name, channels, size):
    """Return a network on both runtimes; its features are of the size of 1."""
    if name == "efficientnet_lite0":
        network, _ = build_network(name, None, channels, "pooled")
    else:
        torch.manual_seed(0)
        network = architecture(name).build(channels, 7).eval().requires_grad_(False)
        fold_batch_norms(network)
        setattr(network, architecture(name).last, nn.Identity())
    inputs = Inputs(architecture(name), channels, CPU)
    return OpenVino(network, inputs, size), Eager(network, inputs, "float32")


@pytest.fixture
def set_threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("name", "size", "channels", "threads"),
    [
        pytest.param("efficientnet_lite0", 224, 3, 1, marks=pytest.mark.full),
        ("efficientnet_lite0", 97, 10, 1),  # an odd side is padded otherwise
        pytest.param("efficientnet_lite0", 64, 2, 2, marks=pytest.mark.full),
        ("bn_inception", 96, 3, 1),  # blue first
        pytest.param("bn_inception", 96, 4, 1, marks=pytest.mark.full),
        (TINY_NETWORK, 64, 3, 2),
        pytest.param("resnet18", 64, 3, 2, marks=pytest.mark.full),
        pytest.param("resnet18", 64, 2, 1, marks=pytest.mark.full),
        pytest.param("resnet50", 64, 3, 1, marks=pytest.mark.full),
    ],
)
def test_features_agree_with_eager(name, size, channels, threads, rng, set_threads):
    set_threads(threads)
    fast, eager = both(name, channels, size)
    images = rng.integers(0, 256, (5, size, size, channels), np.uint8)
    expected = eager(images)
    found = fast(images)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 * max(1, abs(expected).max()))
    assert np.abs(expected).max() > 1e-3
    # the same bits again, and of each image alone
    np.testing.assert_array_equal(fast(images.copy()), found)
    np.testing.assert_array_equal(np.concatenate([fast(images[:1]), fast(images[1:])]), found)


@pytest.mark.full
@pytest.mark.skipif(not openvino_computes("bfloat16"), reason="this CPU has no bfloat16")
def test_bfloat16_is_near_and_does_not_depend_on_the_batch(rng):
    network, _ = build_network("efficientnet_lite0", None, 3, "pooled")
    inputs = Inputs(architecture("efficientnet_lite0"), 3, CPU)
    images = rng.integers(0, 256, (5, 112, 112, 3), np.uint8)
    exact, half = (OpenVino(network, inputs, 112, each) for each in ("float32", "bfloat16"))
    expected, found = exact(images), half(images)
    assert 0 < np.abs(found - expected).max() < 0.1 * np.abs(expected).max()
    np.testing.assert_array_equal(np.concatenate([half(images[:1]), half(images[1:])]), found)


def test_it_uses_the_threads_of_torch_at_the_call(rng, set_threads):
    fast, _ = both(TINY_NETWORK, 3, 32)
    images = rng.integers(0, 256, (2, 32, 32, 3), np.uint8)
    used = []
    for threads in (1, 2, 2):
        set_threads(threads)
        fast(images)
        _, request = fast._ready
        used.append((request.get_compiled_model(), request))
    assert [model.get_property("INFERENCE_NUM_THREADS") for model, _ in used] == [1, 2, 2]
    assert used[1][1] is used[2][1]  # compiled once


def test_a_network_that_it_does_not_take_says_why(rng):
    network = architecture("bn_inception").build(3, 7).eval().requires_grad_(False)
    inputs = Inputs(architecture("bn_inception"), 3, CPU)
    with pytest.raises(NotConverted, match="larger than the data shape") as caught:
        OpenVino(network, inputs, 32)  # its last pictures are smaller than a pool
    assert "\n" not in str(caught.value)


@pytest.mark.full
def test_importing_it_reports_nothing_to_its_makers():
    code = (
        "import sys; from actionspan.networks.runtime import find_openvino; "
        "assert find_openvino(); import openvino.tools.ovc as tools; "
        "assert not sys.modules['openvino_telemetry']; "
        "assert 'stub' in type(tools.telemetry).__module__, tools.telemetry"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("ACTIONSPAN_CACHE", str(tmp_path))
    return tmp_path


@pytest.fixture
def converted(monkeypatch) -> Mock:
    """Is called for each network that is converted."""
    monkeypatch.setattr(runtime, "_converted", calls := Mock(wraps=runtime._converted))
    return calls


def made(channels=3, size=32, seed=0, gain=1.0, width=8):
    """Return a small network of torch's own layers, which are kept; layers of `tiny` are not."""
    torch.manual_seed(seed)
    layers = [nn.Conv2d(channels, width, 7, stride=2), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 7)]
    network = nn.Sequential(*layers).eval().requires_grad_(False)
    return network, Inputs(architecture("resnet18"), channels, CPU, gain), size


@pytest.mark.parametrize(
    ("name", "channels"),
    [
        (None, 3),
        pytest.param("efficientnet_lite0", 3, marks=pytest.mark.full),
        pytest.param("efficientnet_lite0", 10, marks=pytest.mark.full),
    ],
)
def test_kept_networks_compute_the_same_bits(
    name, channels, cache, converted, rng, monkeypatch, set_threads
):
    given = made(channels, 64)
    if name:  # with its own weights
        inputs = Inputs(architecture(name), channels, CPU)
        given = build_network(name, None, channels, "pooled")[0], inputs, 64
    images = rng.integers(0, 256, (5, 64, 64, channels), np.uint8)
    first = OpenVino(*given)(images)
    assert converted.call_count == 1
    kept = OpenVino(*given)
    np.testing.assert_array_equal(kept(images), first)
    assert converted.call_count == 1
    monkeypatch.setenv("ACTIONSPAN_CACHE", "")
    np.testing.assert_array_equal(OpenVino(*given)(images), first)
    assert converted.call_count == 2
    # on other threads what is kept is of no use
    monkeypatch.setenv("ACTIONSPAN_CACHE", str(cache))
    set_threads(torch.get_num_threads() + 1)
    kept(images)
    assert converted.call_count == 3


def digest(network, inputs, size):
    return network_digest(network, inputs, (size, size, len(inputs.mean)))


def test_other_weights_inputs_layers_and_colours_have_another_digest():
    network, inputs, size = made()
    first = digest(network, inputs, size)
    assert first == digest(*made())
    others = [{"seed": 1}, {"size": 33}, {"width": 9}]
    others += [{"channels": 2}, {"channels": 2, "gain": 2.0}]
    found = [first, *(digest(*made(**other)) for other in others)]
    network[2].padding = 1  # a setting of a layer without weights
    found.append(digest(network, inputs, size))
    inputs.bgr = True
    found.append(digest(network, inputs, size))
    assert len(set(found)) == len(found)
    assert digest(architecture("resnet18").build(3, 7), inputs, size), "ours are known too"


def test_other_versions_and_machines_do_not_use_it(cache, converted, monkeypatch):
    OpenVino(*made())
    openvino, another = runtime.find_openvino(), lambda *_: "another"
    changes = {
        "openvino": (openvino, "__version__", "2030.1"),
        "processor": (openvino.Core, "get_property", another),
        "instructions": (torch.backends.cpu, "get_cpu_capability", another),
    }
    for number, (which, change) in enumerate(changes.items(), start=1):
        with monkeypatch.context() as patch:
            patch.setattr(*change)
            OpenVino(*made())
        assert converted.call_count == 1 + number, which
    OpenVino(*made())
    assert converted.call_count == 4, "what was kept first is still of use"


class Doubled(nn.Module):
    """A layer that the package does not know."""

    def forward(self, images):
        return 2 * images


def test_a_network_with_layers_of_a_plug_in_is_not_kept(cache, converted, rng):
    network, *others = made()
    images = rng.integers(0, 256, (2, 32, 32, 3), np.uint8)
    plain = OpenVino(network, *others)(images)
    (kept,) = cache.iterdir()
    network.append(Doubled())
    found = [OpenVino(network, *others)(images) for _ in range(2)]
    assert converted.call_count == 3
    assert list(cache.iterdir()) == [kept]
    np.testing.assert_allclose(found[1], 2 * plain, rtol=1e-4)


@pytest.mark.parametrize("content", first_tier([b"", b"no network", bytes(10_000), None], None))
def test_a_file_that_openvino_refuses_is_made_again(content, cache, converted, rng):
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
    assert converted.call_count == 2
    # texts inside may differ by a byte from one compilation to the next
    assert len(read_cached(path.stem)) == pytest.approx(len(compiled), rel=1e-3)
