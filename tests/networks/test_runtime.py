"""OpenVINO gives what eager PyTorch gives, where it is there and takes the network."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from actionspan.features.encoders import build_network
from actionspan.networks import runtime
from actionspan.networks.architecture import Inputs, architecture
from actionspan.networks.runtime import Eager, NotConverted, OpenVino, openvino_computes
from actionspan.networks.weights import fold_batch_norms

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
        setattr(network, architecture(name).last, torch.nn.Identity())
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
        ("efficientnet_lite0", 64, 2, 2),
        ("bn_inception", 96, 3, 1),  # blue first
        pytest.param("bn_inception", 96, 4, 1, marks=pytest.mark.full),
        ("resnet18", 64, 3, 2),
        pytest.param("resnet18", 64, 2, 1, marks=pytest.mark.full),
        pytest.param("resnet50", 64, 3, 1, marks=pytest.mark.full),
    ],
)
def test_features_are_those_of_eager(name, size, channels, threads, rng, set_threads):
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


@pytest.mark.skipif(not openvino_computes("bfloat16"), reason="this CPU has no bfloat16")
def test_bfloat16_is_near_and_does_not_depend_on_the_batch(rng):
    network, _ = build_network("efficientnet_lite0", None, 3, "pooled")
    inputs = Inputs(architecture("efficientnet_lite0"), 3, CPU)
    images = rng.integers(0, 256, (5, 112, 112, 3), np.uint8)
    exact, half = (OpenVino(network, inputs, 112, each) for each in ("float32", "bfloat16"))
    expected, found = exact(images), half(images)
    assert 0 < np.abs(found - expected).max() < 0.1 * np.abs(expected).max()
    np.testing.assert_array_equal(np.concatenate([half(images[:1]), half(images[1:])]), found)


def test_threads_are_those_of_torch_when_it_is_called(rng, set_threads):
    fast, _ = both("resnet18", 3, 32)
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


def test_importing_it_reports_nothing_to_its_makers():
    code = (
        "import sys; from actionspan.networks.runtime import find_openvino; "
        "assert find_openvino(); import openvino.tools.ovc as tools; "
        "assert not sys.modules['openvino_telemetry']; "
        "assert 'stub' in type(tools.telemetry).__module__, tools.telemetry"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_it_may_be_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "openvino", None)
    runtime.find_openvino.cache_clear()
    assert runtime.find_openvino() is None
    monkeypatch.undo()
    runtime.find_openvino.cache_clear()
    assert runtime.find_openvino()
