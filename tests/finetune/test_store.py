"""The step that stores snippets: the file, resuming, and refusals."""

import json

import h5py
import numpy as np
import pytest

from actionspan.cli import main
from actionspan.dataset.video_facts import probe_video
from actionspan.features.encoders import frames_to_batch, planes_to_batch
from actionspan.finetune.settings import StoreSettings
from actionspan.finetune.snippets import SnippetStore
from actionspan.finetune.store import store_snippets
from actionspan.video.optical_flow import flow_of_shard
from actionspan.video.settings import FlowSettings, FrameSettings
from actionspan.video.snippets import frames_of_shard
from ended_jobs import parts_of_ended_job
from finetune.conftest import HEIGHT, SETTINGS, STACK, WIDTH, near, pictures_of

LENGTHS = {"b": 5, "a": 3, "c": 1}


def test_a_video_has_its_pictures_within_jpegs_loss_and_its_facts(write_store):
    path = write_store(LENGTHS)
    store = SnippetStore([path])
    for video, count in LENGTHS.items():
        rgb, planes = pictures_of(video, count)
        near(store.read(video, range(count), "rgb"), rgb)
        near(store.read(video, range(count), "flow"), np.moveaxis(planes, 1, -1))
    with h5py.File(path) as file:
        group = file["b"]
        assert len(group["frame_difference"]) == len(group["flow_magnitude"]) == 5
        found = dict(group.attrs)
        assert len(found.pop("sha256")) == 64
        assert found == {
            **{"duration_seconds": 2.0, "fps": 20.0, "frame_count": 40, "snippet_frames": 8},
            **{"snippets": 5, "video_sha256": "bytes of b", "bound": 20.0},
            **{"height": HEIGHT, "width": WIDTH, "planes": 2 * STACK},
        }
        settings = json.loads(file.attrs["settings"])
        assert settings["frames"] == {"snippet_frames": 8}
        assert settings["snippets"] == {"height": HEIGHT, "width": WIDTH, "jpeg_quality": 95}


def test_the_command_writes_the_store_of_the_function(tmp_path, write_videos, write_store):
    frames, flow = write_videos(LENGTHS)
    words = ["--frames", frames, "--flow", flow, "--out", tmp_path / "one.h5"]
    words += ["--height", HEIGHT, "--width", WIDTH, "--jpeg-quality", 95, "--processes", 2]
    assert main(["finetune", "store", *map(str, words)]) == 0
    one, other = SnippetStore([tmp_path / "one.h5"]), SnippetStore([write_store(LENGTHS)])
    assert one.fingerprint == other.fingerprint


def test_a_killed_step_keeps_the_videos_of_the_same_settings_and_sources(tmp_path, write_videos):
    frames, flow = write_videos(LENGTHS)
    out = tmp_path / "s.h5"

    def job(settings=SETTINGS):
        store_snippets(frames, flow, out, settings)

    first = parts_of_ended_job(out, job)
    assert set(first) == set(LENGTHS)
    assert parts_of_ended_job(out, job) == first
    smaller = StoreSettings(height=HEIGHT, width=WIDTH, jpeg_quality=50)
    second = parts_of_ended_job(out, lambda: job(smaller))
    assert not set(first.items()) & set(second.items())
    with h5py.File(flow, "r+") as file:
        file.attrs["digest"] = "made with another bound"
    third = parts_of_ended_job(out, lambda: job(smaller))
    assert not set(second.items()) & set(third.items())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--frames", "frames_few.h5"], "frames_few.h5: lacks b, which"),
        (["--height", "100"], "height 100: must be a multiple of 8"),
    ],
)
def test_wrong_input_is_one_line(tmp_path, write_videos, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    write_videos(LENGTHS)
    write_videos({"a": 3}, "few")
    given = ["--frames", "frames_0000.h5", "--flow", "flow_0000.h5", "--out", "s.h5"]
    assert main(["finetune", "store", *given, *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


def test_flow_of_other_frames_is_rejected(tmp_path, write_videos):
    frames, _ = write_videos({"a": 3, "b": 2})
    _, flow = write_videos({"a": 4, "b": 2}, "other")
    reasons = store_snippets(frames, flow, tmp_path / "s.h5", SETTINGS)
    assert list(reasons) == ["a"]
    assert "a has 4 snippets" in reasons["a"]
    assert "has 3: make the flow of these frames" in reasons["a"]
    assert SnippetStore([tmp_path / "s.h5"]).videos == ["b"]
    with h5py.File(tmp_path / "s.h5") as file:
        assert json.loads(file.attrs["rejected"]) == reasons


def test_a_shard_without_videos_is_an_empty_store(tmp_path, write_videos, write_store):
    store_snippets(*write_videos({}, "none"), tmp_path / "none.h5", SETTINGS)
    assert SnippetStore([tmp_path / "none.h5", write_store({"a": 1})]).videos == ["a"]


@pytest.mark.full
def test_a_real_video_takes_little_room(shared_data, tmp_path):
    """As large as its frames: at most 5 MB for 100 snippets of both streams, and near to them."""
    path = shared_data / "fights" / "untrimmed" / "training_002.mp4"
    frames, flow, out = (tmp_path / f"{name}.h5" for name in ("frames", "flow", "snippets"))
    frames_of_shard([probe_video(path)], frames, FrameSettings())
    flow_of_shard(frames, flow, FlowSettings(preset="ultrafast"))
    store_snippets(frames, flow, out, StoreSettings())
    store = SnippetStore([out])
    (video,) = store.videos
    assert out.stat().st_size < 50e3 * store.count(video)
    with h5py.File(frames) as file, h5py.File(flow) as flow_file:
        rgb = frames_to_batch(file[video]["rgb"][::4], 112, "squash")
        planes = planes_to_batch(flow_file[video]["flow"][::4], 112, "squash")
    made = store.pictures(video, range(0, store.count(video), 4), ("rgb", "flow"), 112)
    for squares, wanted, most in zip(made, (rgb, planes), (2.0, 1.0), strict=True):
        assert wanted.std() > 0.5  # a picture
        assert np.abs(squares.astype(int) - wanted).mean() < most
