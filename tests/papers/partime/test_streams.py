"""Streams have the speed they are asked for, and frames follow each other."""

import h5py
import numpy as np
import pytest
import torch

from actionspan_papers.partime.footage import Footage, frame_stream, random_stream, speed


@pytest.fixture
def footage(tmp_path):
    """Two videos whose pixels count frames; the second counts from 100."""
    with h5py.File(tmp_path / "frames.h5", "w") as file:
        for name, first in (("a", 0), ("b", 100)):
            group = file.create_group(name)
            group.attrs["fps"] = 25.0
            frames = first + np.arange(40, dtype=np.uint8)
            group["gray"] = np.broadcast_to(frames[:, None, None], (40, 32, 40))
    return Footage(tmp_path / "frames.h5")


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_the_speed_of_a_random_stream_is_what_its_correlation_leaves(correlation):
    assert speed(random_stream(correlation, 4000, 1)) == pytest.approx(1 - correlation, rel=0.1)


def test_a_seed_repeats_and_another_differs():
    assert torch.equal(random_stream(0.5, 50, 1), random_stream(0.5, 50, 1))
    assert not torch.equal(random_stream(0.5, 50, 1), random_stream(0.5, 50, 2))


def test_frames_follow_each_other_by_so_many(footage):
    stream = frame_stream(footage, 4, 20, seed=1)
    values = stream[:, 0, 0, 0] * footage.spread + float(footage.mean[0, 0])
    counted = (255 * values).round()
    within = torch.diff(counted[:10])
    assert torch.equal(within, torch.full((9,), 4.0))
    assert len(stream) == 20


def test_a_stream_longer_than_all_videos_begins_again_one_frame_later(footage):
    stream = frame_stream(footage, 8, 20, seed=1)
    counted = (255 * (stream[:, 0, 0, 0] * footage.spread + float(footage.mean[0, 0]))).round()
    assert counted[10] == counted[0] + 1


def test_taking_fewer_frames_is_faster(footage):
    slow, fast = (speed(frame_stream(footage, every, 10, seed=1)) for every in (1, 4))
    assert fast > 3 * slow
