"""Feature shards: contents, resuming, and the same bits in any shard."""

import subprocess
import sys

import h5py
import numpy as np
import pytest
import torch

from actionspan.cli import main
from actionspan.errors import InputError, JobError
from actionspan.features import extraction as module
from actionspan.features.encoders import HISTOGRAM_FEATURES as HISTOGRAM
from actionspan.features.extraction import TwoStream, extract
from actionspan.features.settings import EncoderSettings
from actionspan.networks.bn_inception import BNInception
from features.conftest import SMALL
from tiers import first_tier

LENGTHS = {"a": 3, "b": 1, "c": 5}
BN, FLOW = {"flow_encoder": "bn_inception"}, {"flow_encoder": "flow_histogram"}
BOTH = {**BN, "flow_histogram": True}


@pytest.fixture
def settings(weights):
    """One checkpoint for both streams."""
    chosen = {"rgb_encoder": "bn_inception", "rgb_weights": weights["bn"], **FLOW}
    chosen |= {**SMALL, "batch_size": 2}
    return lambda **options: EncoderSettings(**(chosen | options))


def test_a_shard_holds_both_streams_and_what_describes_them(write_images, settings, tmp_path, here):
    frames, flow = write_images(LENGTHS)
    out = tmp_path / "out.h5"
    assert extract(frames, flow, out, settings()) == {}
    with h5py.File(out) as file, h5py.File(flow) as flow_file:
        assert list(file) == ["a", "b", "c"]
        for name, rows in LENGTHS.items():
            group = file[name]
            assert group["rgb"].shape == group["mover"].shape == (rows, 1024)
            assert group["flow"].shape == (rows, HISTOGRAM)
            assert group["rgb"].dtype == group["flow"].dtype == np.float32
            for key in ("time", "frame_difference", "flow_magnitude"):
                np.testing.assert_array_equal(group[key][:], flow_file[name][key][:])
            assert dict(group.attrs) == dict(flow_file[name].attrs)


WIDTHS = [(BN, 1024), (BOTH, 1024 + HISTOGRAM), (FLOW, HISTOGRAM)]


@pytest.mark.parametrize(("how", "width"), first_tier(WIDTHS, WIDTHS[1]))
def test_flow_is_a_network_a_histogram_or_both(write_images, settings, tmp_path, here, how, width):
    extract(*write_images({"a": 2}), tmp_path / "out.h5", settings(**how))
    with h5py.File(tmp_path / "out.h5") as file:
        assert file["a/flow"].shape == (2, width)
    found = TwoStream(settings(**how), 4).features
    assert found == {"rgb": 1024, "flow": width, "mover": 1024}


@pytest.mark.full
def test_scores_are_one_value_a_class(settings, weights, tmp_path):
    flow = tmp_path / "flow.pth"
    torch.save(BNInception(channels=4, classes=9).state_dict(), flow)
    clips = {"clip_encoder": "i3d", "clip_weights": weights["i3d"], "clip_size": 32}
    chosen = settings(source="scores", **BN, flow_weights=flow, **clips)
    encode = TwoStream(chosen, 4)
    assert encode.features == {"rgb": 6, "flow": 9, "mover": 6, "clip": 5}
    frames = np.zeros((9, 32, 32, 3), np.uint8)
    assert encode.rgb(frames).shape == (9, 6)
    assert encode.clip.vectors(frames, np.arange(9)).shape == (2, 5)


def test_a_video_has_the_same_bits_in_any_shard(write_images, settings, tmp_path, here):
    extract(*write_images(LENGTHS, "many"), tmp_path / "many.h5", settings(**BOTH))
    extract(*write_images({"c": 5}, "one"), tmp_path / "one.h5", settings(**BOTH))
    with h5py.File(tmp_path / "many.h5") as many, h5py.File(tmp_path / "one.h5") as one:
        for stream in ("rgb", "flow", "mover"):
            np.testing.assert_array_equal(many["c"][stream][:], one["c"][stream][:])


def test_a_part_is_kept_for_the_same_settings_weights_and_video(
    monkeypatch, write_images, settings, tmp_path
):
    given: list[list[str]] = []
    monkeypatch.setattr(module, "map_videos", lambda *words, **_: given.append(words[3]) or {})
    files = write_images({"a": 2, "b": 1})
    (tmp_path / "bn.pt").write_bytes(settings().rgb_weights.read_bytes())
    for crop in ("squash", "squash", "centre", "squash"):
        if len(given) == 3:
            torch.save(BNInception(classes=7).state_dict(), tmp_path / "bn.pt")
        chosen = settings(crop=crop, rgb_weights=tmp_path / "bn.pt")
        extract(*files, tmp_path / "out.h5", chosen)
    assert given[0] == given[1]
    assert len(set(sum(given[1:], []))) == 6


def test_nothing_to_encode_loads_no_network(write_images, settings, tmp_path, monkeypatch):
    monkeypatch.setattr("actionspan.jobs.apart._Worker", None)  # no process can be started
    assert extract(*write_images({}), tmp_path / "out.h5", settings()) == {}


@pytest.mark.full
def test_weights_that_cannot_be_loaded_are_no_videos_fault(write_images, settings, tmp_path):
    bad, out = tmp_path / "bad.pth", tmp_path / "out.h5"
    bad.write_bytes(b"not weights")
    with pytest.raises(JobError, match=r"bad\.pth: not a checkpoint"):
        extract(*write_images({"a": 1, "b": 1}), out, settings(rgb_weights=bad))
    assert not out.exists()


def test_frames_that_lack_a_video_are_named(write_images, settings, tmp_path):
    frames, _ = write_images({"a": 1}, "one")
    _, flow = write_images({"a": 1, "b": 1}, "two")
    with pytest.raises(InputError, match="one_frames.h5: lacks b, which .*two_flow.h5 holds"):
        extract(frames, flow, tmp_path / "out.h5", settings())


def test_the_command_runs(write_images, tmp_path):
    frames, flow = write_images({"a": 1})
    words = f"features extract --frames {frames} --flow {flow} --out {tmp_path}/out.h5"
    words += " --input-size 32 --device cpu"
    assert main(f"{words} --flow-encoder flow_histogram".split()) == 0
    assert (tmp_path / "out.h5").exists()


@pytest.mark.full
def test_frames_without_squares_say_what_to_run(write_images, settings, tmp_path, here):
    frames, flow = write_images({"a": 2})
    with h5py.File(frames, "a") as file:
        del file["a/mover"]
    reasons = extract(frames, flow, tmp_path / "out.h5", settings())
    assert "s_frames.h5: no squares around what moves; run video frames" in reasons["a"]
    assert extract(frames, flow, tmp_path / "none.h5", settings(mover=False)) == {}
    with h5py.File(tmp_path / "none.h5") as file:
        assert "mover" not in file["a"]


@pytest.mark.full
def test_torchvision_is_not_imported_unless_a_resnet_is_asked_for():
    code = (
        "import sys, actionspan.features.extract; assert 'torch' not in sys.modules\n"
        "from actionspan.features.extraction import TwoStream\n"
        "from actionspan.features.settings import EncoderSettings\n"
        "TwoStream(EncoderSettings(), 4); assert 'torchvision' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
