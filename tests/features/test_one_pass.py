"""Features in one pass are those of the separate steps, to the bit."""

import multiprocessing
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from actionspan.annotations.tables import read_videos
from actionspan.errors import InputError
from actionspan.features import VideoSettings, encode_video, one_pass
from actionspan.features.one_pass import VideoEncoder, encode_each
from actionspan.features.settings import EncoderSettings
from actionspan.jobs.parts import rejected_videos
from actionspan.jobs.shards import ShardWork
from actionspan.settings import to_json
from actionspan.video.settings import FlowSettings, FrameSettings
from actionspan.workflow.runs import flags
from features.conftest import SMALL, assert_same_h5, probe, run, work_here
from tiers import first_tier
from video.numbered import encode, mostly_still, small_mover

HISTOGRAM = VideoSettings(encoders=EncoderSettings(flow_encoder="flow_histogram", **SMALL))


@pytest.fixture(scope="module")
def shard(tmp_path_factory) -> Path:
    """Write a table of six videos: four of 2 to 70 frames, one mostly still, one that is none."""
    folder = tmp_path_factory.mktemp("videos")
    paths = [encode(folder / f"v{n}.mp4", frames) for n, frames in enumerate((70, 41, 3, 2))]
    paths += [mostly_still(folder / "v4.mp4"), folder / "broken.mp4"]
    paths[-1].write_bytes(paths[0].read_bytes()[:500])
    return probe(paths, folder / "shard.txt")


def separately(shard: Path, folder: Path, frames: dict, flow: dict, encoders: dict) -> Path:
    with work_here():
        run(f"video frames --shard {shard} --out {folder}/frames.h5 {flags(frames)}")
        run(f"video flow --frames {folder}/frames.h5 --out {folder}/flow.h5 {flags(flow)}")
        inputs = f"--frames {folder}/frames.h5 --flow {folder}/flow.h5"
        run(f"features extract {inputs} --out {folder}/separate.h5 {flags(encoders)}")
    return folder / "separate.h5"


CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "one network for both streams": (
        {"stack": 1, "snippet_frames": 8, "mover_side": 32},
        {"algorithm": "dis", "preset": "fast"},
        {**SMALL, "batch_size": 4},
    ),
    "stacked flow with a histogram, other networks": (
        {"stack": 2, "snippet_frames": 4, "short_side": 40, "mover_side": 0},
        {"algorithm": "farneback", "bound": 10.0},
        {**SMALL, "batch_size": 3, "flow_encoder": "bn_inception", "flow_weights": "bn"}
        | {"flow_histogram": True, "crop": "centre", "mover": False},
    ),
    "clips": (
        {"stack": 3, "mover_side": 32, "clips": True, "clip_rate": 20.0, "clip_side": 32},
        {"algorithm": "dis"},
        {**SMALL, "flow_encoder": "flow_histogram", "clip_encoder": "i3d", "clip_weights": "i3d"}
        | {"clip_size": 32, "clip_window": 32, "clip_stride": 16},
    ),
}


@pytest.mark.full
@pytest.mark.parametrize("case", first_tier(CASES, "clips"))
def test_features_are_those_of_the_separate_steps(case, shard, weights, tmp_path):
    frames, flow, encoders = CASES[case]
    encoders = {k: weights[v] if k.endswith("_weights") else v for k, v in encoders.items()}
    expected = separately(shard, tmp_path, frames, flow, encoders)
    processes = 2 if case.startswith("one network") else 1
    words = f"features encode --shard {shard} --out {tmp_path}/one/pass.h5 --processes {processes}"
    run(f"{words} {flags(frames | flow | encoders)}")
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["pass.h5"]
    with h5py.File(expected) as separate, h5py.File(tmp_path / "one/pass.h5") as one:
        assert_same_h5(one, separate)
        assert list(one) == ["v0", "v1", "v2", "v3", "v4"]
        still = one["v4/still"][:]
        assert 0.2 < still.mean() < 0.9
        for key in set(one["v4"]) & {"rgb", "flow", "mover", "flow_magnitude"}:
            values = one[f"v4/{key}"][:]
            assert np.array_equal(values[1:][still[1:]], values[:-1][still[1:]])


def test_squares_decide_what_is_still_whether_they_are_encoded_or_not(tmp_path):
    """A model of the papers has no such stream, but learned from features that have it."""
    path = small_mover(tmp_path / "v.mp4")
    found = {}
    for side, mover in ((32, True), (32, False), (0, False)):
        encoders = replace(HISTOGRAM.encoders, mover=mover, input_size=32)
        frames = FrameSettings(short_side=32, mover_side=side)
        found[side, mover] = encode_video(path, VideoSettings(frames=frames, encoders=encoders))
    squares, without, none = found.values()
    assert not np.array_equal(squares["still"], none["still"])
    for key, values in without.items():
        assert np.array_equal(values, squares[key]), key


@pytest.mark.full
def test_videos_are_rejected_as_in_the_separate_steps(shard, tmp_path):
    """One is beyond a limit, one is gone, one has pictures too small for its flow."""
    table, gone = tmp_path / "shard.txt", encode(tmp_path / "gone.mp4", 9)
    small = encode(tmp_path / "small.mp4", 9, size=(16, 24))
    probe([small, gone], table)
    gone.unlink()
    table.write_text(table.read_text() + shard.read_text().partition("\n")[2])
    expected = separately(table, tmp_path, {"max_frames": 50, "mover_side": 32}, {}, SMALL)
    run(f"features encode --shard {table} --out {tmp_path}/one.h5 --max-frames 50 {flags(SMALL)}")
    with h5py.File(expected) as separate, h5py.File(tmp_path / "one.h5") as one:
        assert list(one) == list(separate) == ["v1", "v2", "v3"]
        rejected = rejected_videos(one)
        assert rejected == rejected_videos(separate)
        assert sorted(rejected) == ["gone", "small", "v0", "v4"]


def test_a_rejected_video_ends_the_job_where_it_shall(shard, tmp_path, capsys):
    words = f"features encode --shard {shard} --out {tmp_path}/out.h5 {flags(SMALL)}"
    run(f"{words} --max-frames 50 --on-bad-input fail", 2)
    assert "out.h5: 2 rejected (above)" in capsys.readouterr().err.splitlines()[-1]
    assert (tmp_path / "out.h5.parts/v1.h5").is_file()


def test_a_part_is_kept_while_its_video_and_all_settings_are_the_same(shard, tmp_path, monkeypatch):
    given: list[list[str]] = []
    monkeypatch.setattr(one_pass, "map_videos", lambda *words, **_: given.append(words[3]) or {})
    words = f"features encode --shard {shard} --out {tmp_path}/out.h5 --input-size 32"
    for more in ("", "", "--bound 10", "--stack 2", "--crop centre"):
        run(f"{words} {more}")
    assert given[0] == given[1]
    assert len(set(sum(given[1:], []))) == 4 * len(given[0])


@pytest.mark.full
def test_memory_does_not_grow_with_the_video(tmp_path):
    """Of 114 more snippets only the features are held, no pictures.

    The thread of the pictures says what is held after each batch: a peak depends on what the other
    does at that moment. Both videos have more than the 57 snippets that a block of `tee` keeps.
    """
    frames, flow = FrameSettings(snippet_frames=2), FlowSettings(preset="ultrafast")
    encoders = replace(HISTOGRAM.encoders, batch_size=2)
    encoder = VideoEncoder(VideoSettings(frames=frames, flow=flow, encoders=encoders))
    short, long = (encode(tmp_path / f"{n}.mp4", n) for n in (120, 120 + 2 * 114))
    encoder(short)  # what is made once

    def most(path: Path) -> int:
        held: list[int] = []
        tracemalloc.start()
        encoder(path, on_progress=lambda _: held.append(tracemalloc.get_traced_memory()[0]))
        tracemalloc.stop()
        return max(held)

    features = 114 * 2 * 1280 * 4  # of RGB and of what moves
    pictures = 114 * 64 * 128 * 2  # grey frames or planes of flow; RGB is more
    assert -most(short) + most(long) < features + pictures / 2


def test_encode_video_returns_arrays(tmp_path):
    settings = VideoSettings(encoders=EncoderSettings(**SMALL))
    found = encode_video(str(encode(tmp_path / "v.mp4", 40)), settings)
    assert found.pop("cuts").shape[1] == 2
    assert found.pop("bouts").shape[1] == 3
    names = "rgb flow mover time frame_difference flow_magnitude still"
    assert set(found) == set(names.split())
    assert {len(values) for values in found.values()} == {5}
    assert found["rgb"].shape == found["flow"].shape == (5, 1280)
    with pytest.raises(InputError, match="no such file"):
        encode_video(tmp_path / "none.mp4", settings)


def test_a_process_encodes_one_video_after_another_into_files_of_their_own(shard, tmp_path):
    """The features are those of `encode_video`; a video that cannot be read ends nothing."""
    one, two = (video for video in read_videos(shard) if video.video_id in ("v1", "v2"))
    videos = [one, replace(one, video_id="gone", path=tmp_path / "gone.mp4"), two]
    jobs = [(video, tmp_path / f"{video.video_id}.h5") for video in videos]
    reasons, said, processes = encode_each(iter(jobs), HISTOGRAM, ShardWork()), {}, set()
    for video, out in jobs:
        _, said[video.video_id] = next(reasons)
        processes |= {child.pid for child in multiprocessing.active_children()}
        assert out.exists() == (not said[video.video_id])
    reasons.close()
    assert [name for name, reason in said.items() if reason] == ["gone"]
    assert len(processes) == 1
    for video in (one, two):
        with h5py.File(tmp_path / f"{video.video_id}.h5") as file:
            assert file.attrs["settings"] == to_json(**vars(HISTOGRAM))
            for name, values in encode_video(video.path, HISTOGRAM).items():
                assert np.array_equal(file[video.video_id][name], values)
