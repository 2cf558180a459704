"""OpenVINO gives what eager PyTorch gives, where it is there and takes the network."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from actionspan.features.encoders import build_network
from actionspan.networks import runtime
from actionspan.networks.architecture import architecture
from actionspan.networks.folding import fold_batch_norms
from actionspan.networks.inputs import Inputs
from actionspan.networks.runtime import Eager, NotConverted, OpenVino

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


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("channels", [3, 2, 10])
@pytest.mark.parametrize(
    ("name", "size"),
    [("efficientnet_lite0", 97), ("resnet18", 64), ("resnet50", 64), ("bn_inception", 96)],
)
def test_features_are_those_of_eager(name, size, channels, rng, threads):
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


def test_all_images_of_the_packaged_network_agree_at_its_own_size(rng):
    fast, eager = both("efficientnet_lite0", 3, 224)
    images = rng.integers(0, 256, (3, 224, 224, 3), np.uint8)
    np.testing.assert_allclose(fast(images), eager(images), rtol=0, atol=1e-4)


def test_threads_are_those_of_torch_when_it_is_called(rng):
    fast, _ = both("resnet18", 3, 32)
    images = rng.integers(0, 256, (2, 32, 32, 3), np.uint8)
    before = torch.get_num_threads()
    used = []
    try:
        for threads in (1, 2, 2):
            torch.set_num_threads(threads)
            fast(images)
            _, request = fast._ready
            used.append((request.get_compiled_model(), request))
    finally:
        torch.set_num_threads(before)
    assert [model.get_property("INFERENCE_NUM_THREADS") for model, _ in used] == [1, 2, 2]
    assert used[1][1] is used[2][1]  # compiled once


def test_a_network_that_it_does_not_take_says_why(rng):
    network = architecture("bn_inception").build(3, 7).eval()
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
