"""Which runtime computes the encoders, what falls back, and what features say of it."""

import sys
from dataclasses import replace

import h5py
import numpy as np
import pytest
import torch

from actionspan.errors import InputError
from actionspan.features.encoders import Encoder, runtime_of
from actionspan.features.extraction import encoders_digest, extract
from actionspan.features.settings import EncoderSettings
from actionspan.networks import runtime
from actionspan.networks.runtime import Eager, OpenVino

pytest.importorskip("openvino")
AUTO = EncoderSettings(device="cpu", input_size=64)
EAGER, FAST = replace(AUTO, runtime="eager"), replace(AUTO, runtime="openvino")


@pytest.fixture
def missing(monkeypatch):
    """Take openvino away, as where it is not installed."""
    monkeypatch.setitem(sys.modules, "openvino", None)
    runtime.find_openvino.cache_clear()
    yield
    monkeypatch.undo()
    runtime.find_openvino.cache_clear()


def test_auto_is_openvino_on_the_cpu_and_eager_where_a_gpu_computes(monkeypatch):
    found = [runtime_of(settings) for settings in (AUTO, EAGER, FAST)]
    assert found == ["openvino", "eager", "openvino"]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert runtime_of(replace(AUTO, device="auto")) == "eager"
    with pytest.raises(InputError, match="device auto is a GPU here; give device cpu"):
        runtime_of(replace(FAST, device="auto"))


def test_without_openvino_auto_is_eager_and_openvino_says_what_to_run(missing):
    assert encoders_digest(AUTO) == encoders_digest(EAGER)
    assert runtime_of(AUTO) == "eager"
    assert isinstance(Encoder("efficientnet_lite0", None, AUTO, 3).run, Eager)
    with pytest.raises(InputError, match="not installed; run: pip install 'actionspan.fast.'"):
        runtime_of(FAST)
    with pytest.raises(InputError, match="not installed"):
        Encoder("efficientnet_lite0", None, FAST, 3)


def test_a_network_that_openvino_does_not_take_is_computed_by_eager(weights, capsys, rng):
    def make(**how):
        small = replace(AUTO, input_size=32, rgb_encoder="bn_inception", **how)
        return Encoder("bn_inception", weights["bn"], small, 3)

    encoder = make()
    assert isinstance(encoder.run, Eager)
    said = capsys.readouterr().err
    assert said.startswith("bn_inception: computed by PyTorch, not OpenVINO: ")
    assert said.count("\n") == 1
    images = rng.integers(0, 256, (2, 40, 40, 3), np.uint8)
    np.testing.assert_array_equal(encoder(images), make(runtime="eager")(images))
    with pytest.raises(InputError, match="openvino, which does not take bn_inception"):
        make(runtime="openvino")


def test_the_digest_tells_runtimes_apart_and_not_how_they_were_chosen(monkeypatch):
    fast = encoders_digest(AUTO)
    assert encoders_digest(FAST) == fast
    assert encoders_digest(EAGER) != fast
    monkeypatch.setattr("actionspan.features.extraction.openvino_version", lambda: "openvino 1")
    assert encoders_digest(AUTO) != fast


def test_batches_of_any_length_give_the_same_bits(rng):
    images = rng.integers(0, 256, (7, 50, 60, 3), np.uint8)
    one, other = (
        Encoder("efficientnet_lite0", None, replace(FAST, batch_size=size), 3) for size in (2, 16)
    )
    assert isinstance(one.run, OpenVino)
    np.testing.assert_array_equal(one(images), other(images))


@pytest.mark.full
def test_a_run_with_another_runtime_makes_the_features_again(write_images, tmp_path, here):
    frames, flow = write_images({"a": 3})
    found = []
    for settings in (EAGER, FAST):
        # a part of an earlier, killed run by the other runtime
        extract(frames, flow, tmp_path / "out.h5", settings)
        with h5py.File(tmp_path / "out.h5") as file:
            streams = {name: file["a"][name][:] for name in ("rgb", "flow")}
            made_by = {file["a"][name].attrs["runtime"] for name in streams}
            found.append((streams, made_by, file.attrs["digest"]))
    (eager, by_eager, first), (fast, by_openvino, second) = found
    assert (by_eager, by_openvino) == ({"eager"}, {runtime.openvino_version()})
    assert first != second
    for stream in eager:
        assert (eager[stream] != fast[stream]).any()  # by rounding
        np.testing.assert_allclose(fast[stream], eager[stream], rtol=0, atol=1e-4)


def test_bfloat16_is_openvinos_where_the_cpu_has_it(monkeypatch):
    half = {"precision": "bfloat16"}
    for has in (True, False):
        can = [precision for precision in ("float32", "bfloat16") if has or precision == "float32"]
        monkeypatch.setattr(runtime, "openvino_computes", can.__contains__)
        assert runtime_of(replace(AUTO, **half)) == ("openvino" if has else "eager")
    with pytest.raises(InputError, match="this CPU has no bfloat16; give float32"):
        runtime_of(replace(FAST, **half))


@pytest.mark.parametrize("options", [{"precision": "float16"}, {"device": "cuda"}])
def test_openvino_needs_the_cpu(options):
    with pytest.raises(ValueError, match="runtime openvino .* give these, or runtime auto"):
        replace(FAST, **options)
