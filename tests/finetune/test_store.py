"""The step that stores snippets: what is in the file, resuming, and what is refused."""

import json

import h5py
import numpy as np
import pytest

from actionspan.cli import main
from actionspan.dataset.video_facts import probe_video
from actionspan.features.encoders import frames_to_batch, planes_to_batch
from actionspan.finetune.settings import StoreSettings
from actionspan.finetune.snippets import SnippetStore
from actionspan.finetune.storing import store_snippets
from actionspan.video.optical_flow import flow_of_shard
from actionspan.video.settings import FlowSettings, FrameSettings
from actionspan.video.snippets import frames_of_shard
from ended_jobs import parts_of_ended_job
from finetune.conftest import HEIGHT, SETTINGS, STACK, WIDTH, near, pictures_of

LENGTHS = {"b": 5, "a": 3, "c": 1}


def test_pictures_come_back_within_jpegs_loss(write_store):
    store = SnippetStore([write_store(LENGTHS)])
    for video, count in LENGTHS.items():
        rgb, planes = pictures_of(video, count)
        near(store.read(video, range(count), "rgb"), rgb)
        near(store.read(video, range(count), "flow"), np.moveaxis(planes, 1, -1))


def test_a_video_has_what_readers_need(write_store):
    with h5py.File(write_store(LENGTHS)) as file:
        group = file["b"]
        np.testing.assert_allclose(group["time"][:], 0.2 + 0.4 * np.arange(5))
        assert len(group["frame_difference"]) == len(group["flow_magnitude"]) == 5
        found = dict(group.attrs)
        sha256 = found.pop("sha256")
        assert len(sha256) == 64
        assert found == {
            "duration_seconds": 2.0,
            "fps": 20.0,
            "frame_count": 40,
            "snippet_frames": 8,
            "snippets": 5,
            "video_sha256": "bytes of b",
            "height": HEIGHT,
            "width": WIDTH,
            "planes": 2 * STACK,
            "bound": 20.0,
        }
        settings = json.loads(file.attrs["settings"])
        assert settings["frames"] == {"snippet_frames": 8}
        assert settings["snippets"] == {"height": HEIGHT, "width": WIDTH, "jpeg_quality": 95}


def test_the_command_writes_what_the_function_writes(tmp_path, write_videos, write_store):
    frames, flow = write_videos(LENGTHS)
    words = ["--frames", frames, "--flow", flow, "--out", tmp_path / "one.h5"]
    words += ["--height", HEIGHT, "--width", WIDTH, "--jpeg-quality", 95, "--processes", 2]
    assert main(["finetune", "store", *map(str, words)]) == 0
    one, other = SnippetStore([tmp_path / "one.h5"]), SnippetStore([write_store(LENGTHS)])
    assert one.fingerprint == other.fingerprint


def test_pictures_of_another_size_are_scaled(tmp_path, write_videos):
    frames, flow = write_videos({"a": 2})
    settings = StoreSettings(height=32, width=40, jpeg_quality=95)
    store_snippets(frames, flow, tmp_path / "s.h5", settings)
    store = SnippetStore([tmp_path / "s.h5"])
    assert store.read("a", [0, 1], "rgb").shape == (2, 32, 40, 3)
    assert store.read("a", [0, 1], "flow").shape == (2, 32, 40, 2 * STACK)


def test_a_killed_step_keeps_the_videos_that_it_stored(tmp_path, write_videos, write_store):
    frames, flow = write_videos(LENGTHS)
    out = tmp_path / "s.h5"

    def job():
        store_snippets(frames, flow, out, SETTINGS)

    first = parts_of_ended_job(out, job)
    assert set(first) == set(LENGTHS)
    assert parts_of_ended_job(out, job) == first
    job()
    whole = SnippetStore([write_store(LENGTHS)])
    assert SnippetStore([out]).fingerprint == whole.fingerprint


@pytest.mark.parametrize("changed", ["settings", "flow"])
def test_parts_of_other_settings_or_sources_are_not_kept(tmp_path, write_videos, changed):
    frames, flow = write_videos(LENGTHS)
    out, settings = tmp_path / "s.h5", SETTINGS
    first = parts_of_ended_job(out, lambda: store_snippets(frames, flow, out, settings))
    if changed == "settings":
        settings = StoreSettings(height=HEIGHT, width=WIDTH, jpeg_quality=50)
    else:
        with h5py.File(flow, "r+") as file:
            file.attrs["digest"] = "made with another bound"
    second = parts_of_ended_job(out, lambda: store_snippets(frames, flow, out, settings))
    assert not set(first.items()) & set(second.items())


def complaint(capsys, *words) -> str:
    assert main(["finetune", "store", *map(str, words)]) == 2
    lines = capsys.readouterr().err.splitlines()
    return lines[-1]


def test_wrong_input_is_one_line(tmp_path, write_videos, capsys):
    frames, flow = write_videos(LENGTHS)
    few, _ = write_videos({"a": 3}, "few")
    out = ("--out", tmp_path / "s.h5")
    assert "gone.h5: no such file" in complaint(
        capsys, "--frames", tmp_path / "gone.h5", "--flow", flow, *out
    )
    line = complaint(capsys, "--frames", few, "--flow", flow, *out)
    assert "frames_few.h5: lacks b, which" in line
    line = complaint(capsys, "--frames", frames, "--flow", flow, *out, "--height", 100)
    assert line.endswith("height 100: must be a multiple of 8")
    line = complaint(capsys, "--frames", frames, "--flow", flow, *out, "--jpeg-quality", 0)
    assert "jpeg_quality 0: from 1 to 100" in line
    assert "--processes 0" in complaint(
        capsys, "--frames", frames, "--flow", flow, *out, "--processes", 0
    )


def test_flow_of_other_frames_is_rejected(tmp_path, write_videos, capsys):
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
