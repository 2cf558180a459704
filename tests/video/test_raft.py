"""RAFT-small with the authors' weights: every parameter in its place, and right flow."""

import os

import numpy as np
import pytest
import torch
from torchvision.models.optical_flow import raft_small

from actionspan.errors import InputError
from actionspan.networks.names import NO_MOTION
from actionspan.video.optical_flow import compute_flow, flow_of_shard, hold_weights
from actionspan.video.raft import load_raft, torchvision_name
from actionspan.video.settings import FlowSettings
from video.test_optical_flow import dequantise, moved, warp_errors


@pytest.fixture(scope="module")
def weights(shared_data):
    torch.set_num_threads(1)
    return shared_data / "weights" / "raft-small.pth"


def test_every_parameter_has_its_place(weights):
    """Both list the same layers in the same order, so the order is an independent oracle."""
    authors = torch.load(weights, map_location="cpu", weights_only=True)
    loaded = load_raft(weights).state_dict()
    assert [torchvision_name(name) for name in authors] == list(loaded)
    for (name, theirs), ours in zip(authors.items(), loaded.values(), strict=True):
        assert torch.equal(theirs, ours), name
    assert sum(value.numel() for value in loaded.values()) == 990_162


def test_a_checkpoint_with_torchvision_names_loads_too(tmp_path):
    network = raft_small(weights=None)
    torch.save(network.state_dict(), tmp_path / "own.pth")
    loaded = load_raft(tmp_path / "own.pth").state_dict()
    assert all(torch.equal(value, loaded[name]) for name, value in network.state_dict().items())


def test_parameters_that_a_model_holds_need_no_file(tmp_path):
    torch.manual_seed(1)
    state = raft_small(weights=None).state_dict()
    torch.save(state, tmp_path / "own.pth")
    frames = moved(4, 0, height=132, width=150)[None]
    settings = {"algorithm": "raft", "device": "cpu", "iterations": 2}
    expected = compute_flow(frames, FlowSettings(weights=tmp_path / "own.pth", **settings))
    held = FlowSettings(weights=tmp_path / "none.pth", **settings)
    hold_weights(held, state)
    assert np.array_equal(compute_flow(frames, held)[0], expected[0])
    assert (expected[0] != NO_MOTION).any()
    other = FlowSettings(weights=tmp_path / "other.pth", **settings)
    with pytest.raises(InputError, match="the model: not weights of this network"):
        hold_weights(other, {"a": torch.ones(1)})


@pytest.mark.parametrize("shift", [(4, 0), (0, -3), (-2, 2)])
def test_flow_of_a_translation_is_the_translation(shift, weights):
    chosen = FlowSettings(algorithm="raft", weights=weights, device="cpu")
    coded, magnitude = compute_flow(moved(*shift, height=132, width=150)[None], chosen)
    assert coded.shape == (1, 2, 132, 150)  # padded to a multiple of 8 within, cut back after
    inner = dequantise(coded, 20.0)[0, :, 16:-16, 16:-16]
    assert abs(np.median(inner[0]) - shift[0]) < 0.25
    assert abs(np.median(inner[1]) - shift[1]) < 0.25
    assert magnitude[0] == pytest.approx(np.hypot(*shift), rel=0.15)


def test_frames_smaller_than_its_grid_are_padded(weights):
    chosen = FlowSettings(algorithm="raft", weights=weights, device="cpu")
    coded, _ = compute_flow(moved(2, 0, frames=3, height=50, width=70)[None], chosen)
    assert coded.shape == (1, 4, 50, 70)
    assert abs(np.median(dequantise(coded[0, 0], 20.0)) - 2) < 0.5


@pytest.mark.full
def test_it_explains_real_motion(weights, shared_data):
    from actionspan.video.settings import FrameSettings
    from actionspan.video.snippets import snippets

    clip = shared_data / "decode_cases" / "mma_demo.mp4"
    gray = np.stack(
        [each.gray for each in snippets(clip, FrameSettings(snippet_frames=16))][2:12:3]
    )
    raft, still = warp_errors(gray, FlowSettings(algorithm="raft", weights=weights, device="cpu"))
    assert raft < 0.7 * still


def test_iterations_matter(weights):
    gray = moved(6, 0, height=128, width=128)[None]
    few, many = (
        compute_flow(
            gray, FlowSettings(algorithm="raft", weights=weights, device="cpu", iterations=count)
        )[0]
        for count in (1, 12)
    )
    assert (few != many).any()
    assert (many != NO_MOTION).any()


def run_code():
    os.environ["ACTIONSPAN_TEST_RAN"] = "yes"


class Harmful:
    def __reduce__(self):
        return run_code, ()


def test_what_is_no_checkpoint_is_one_line(tmp_path):
    state = raft_small(weights=None).state_dict()
    first = next(iter(state))
    bad = {
        "text.pth": b"no checkpoint",
        "lacks.pth": {name: value for name, value in state.items() if name != first},
        "shape.pth": {**state, first: torch.zeros(3)},
        "more.pth": {**state, "extra": torch.zeros(3)},
        "nested.pth": {"state_dict": state},
        "harmful.pth": Harmful(),
    }
    for name, content in bad.items():
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            torch.save(content, path)
        with pytest.raises(InputError, match="RAFT-small") as error:
            load_raft(path)
        assert str(path) in str(error.value)
        assert "\n" not in str(error.value)
    assert "ACTIONSPAN_TEST_RAN" not in os.environ
    with pytest.raises(InputError, match="no such file"):
        load_raft(tmp_path / "gone.pth")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_gpu_that_is_not_there_is_one_line(weights):
    chosen = FlowSettings(algorithm="raft", weights=weights, device="cuda")
    with pytest.raises(InputError, match="device is cuda"):
        compute_flow(moved(1, 0)[None], chosen)


def test_missing_weights_stop_the_shard_at_once(tmp_path):
    import h5py

    with h5py.File(tmp_path / "frames.h5", "w") as file:
        file.attrs["digest"] = "x"
        file.create_group("a").attrs["sha256"] = "a"
    chosen = FlowSettings(algorithm="raft", weights=tmp_path / "gone.pth")
    with pytest.raises(InputError, match="weights: .*gone.pth"):
        flow_of_shard(tmp_path / "frames.h5", tmp_path / "flow.h5", chosen)
    assert not (tmp_path / "flow.h5").exists()
