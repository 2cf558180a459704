"""Ray Data calls `encode_video` on two workers and gets the same arrays."""

import os
import time

import numpy as np
import pytest
import torch

from actionspan.features import VideoSettings, encode_video
from actionspan.features.settings import EncoderSettings
from video.numbered import encode

SETTINGS = VideoSettings(encoders=EncoderSettings(input_size=32, device="cpu"))


@pytest.mark.full
def test_ray_data_maps_videos_to_arrays_on_two_workers(tmp_path):
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'ray[data]'")
    lengths = (10, 25, 40, 17)
    videos = [str(encode(tmp_path / f"v{frames}.mp4", frames)) for frames in lengths]
    together = tmp_path / "together"
    together.mkdir()

    def features(row):
        torch.set_num_threads(1)
        # wait until both workers have a video
        (together / str(os.getpid())).touch()
        for _ in range(600):
            if len(list(together.iterdir())) > 1:
                break
            time.sleep(0.1)
        return row | encode_video(row["path"], SETTINGS) | {"worker": os.getpid()}

    ray.init(num_cpus=4, include_dashboard=False, configure_logging=False)
    try:
        items = ray.data.from_items([{"path": path} for path in videos], override_num_blocks=4)
        found = {row["path"]: row for row in items.map(features, concurrency=2).take_all()}
    finally:
        ray.shutdown()
    assert sorted(found) == sorted(videos)
    assert len({row["worker"] for row in found.values()}) == 2
    torch.set_num_threads(1)
    for path, row in found.items():
        expected = encode_video(path, SETTINGS)
        assert set(row) == {*expected, "path", "worker"}
        for key, values in expected.items():
            assert row[key].dtype == values.dtype
            np.testing.assert_array_equal(row[key], values)
