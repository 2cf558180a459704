"""`actionspan video` from a shard's table to flow, as the workflow calls it."""

import subprocess
import sys

import h5py
import numpy as np
import pytest

from actionspan.annotations.tables import SHARD_COLUMNS, write_videos
from actionspan.dataset.video_facts import probe_video
from actionspan.jobs.parts import rejected_videos
from tiers import first_tier
from video.numbered import encode
from worlds.command import actionspan


@pytest.fixture
def shard(tmp_path):
    (tmp_path / "empty.mp4").write_bytes(b"")
    paths = [encode(tmp_path / "one.mp4", 40), tmp_path / "empty.mp4"]
    write_videos(tmp_path / "shard.txt", [probe_video(path) for path in paths], SHARD_COLUMNS)
    return tmp_path / "shard.txt"


@pytest.mark.parametrize("processes", first_tier(["1", "2"], "2"))
def test_from_a_shard_to_flow(processes, shard, tmp_path):
    frames, flow = tmp_path / "frames.h5", tmp_path / "flow.h5"
    how = ("--processes", processes)
    words = ("--shard", shard, "--stack", 2, "--snippet-frames", 16)
    assert actionspan("video", "frames", *words, "--out", frames, *how) == 0
    assert actionspan("video", "flow", "--frames", frames, "--bound", 10, "--out", flow, *how) == 0
    with h5py.File(frames) as one, h5py.File(flow) as two:
        assert list(one) == list(two) == ["one"]
        assert rejected_videos(one) == {}, "the empty one is known"
        assert one["one/rgb"].shape == (2, 64, 128, 3)
        assert one["one/gray"].shape == (2, 3, 64, 128)
        assert two["one/flow"].shape == (2, 4, 64, 128)
        assert two["one/flow"].attrs["bound"] == 10
        assert dict(one["one"].attrs) == dict(two["one"].attrs)
        assert two["one"].attrs["frame_count"] == 40
        np.testing.assert_allclose(two["one/time"], [8 / 25, 24 / 25])


@pytest.mark.full
def test_flow_needs_no_torch(shard, tmp_path):
    frames = tmp_path / "frames.h5"
    actionspan("video", "frames", "--shard", shard, "--out", frames)
    words = f"video flow --frames {frames} --out {tmp_path}/flow.h5 --algorithm"
    code = (
        "import sys\nfrom actionspan.cli import main\n"
        f"for algorithm in ('dis', 'farneback'):\n    main([*{words.split()}, algorithm])\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
