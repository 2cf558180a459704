"""Streams have the speed they are asked for; the loss of a flow is least for the true one."""

import h5py
import numpy as np
import pytest
import torch

from actionspan_papers.partime import footage as shown
from actionspan_papers.partime.footage import frame_stream, photometric, random_stream, speed


@pytest.fixture(scope="module")
def footage(tmp_path_factory):
    """Two videos whose pixels count frames; the second counts from 100."""
    path = tmp_path_factory.mktemp("footage") / "frames.h5"
    with h5py.File(path, "w") as file:
        for name, first in (("a", 0), ("b", 100)):
            group = file.create_group(name)
            group.attrs["fps"] = 25.0
            frames = first + np.arange(40, dtype=np.uint8)
            group["gray"] = np.broadcast_to(frames[:, None, None], (40, 32, 40))
    return shown.Footage(path)


def counted(footage, every):
    """Return which frame each of 20 samples of a stream is."""
    stream = frame_stream(footage, every, 20, seed=1)
    assert len(stream) == 20
    return (255 * (stream[:, 0, 0, 0] * footage.spread + float(footage.mean[0, 0]))).round()


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_the_speed_of_a_random_stream_is_what_its_correlation_leaves(correlation):
    assert speed(random_stream(correlation, 4000, 1)) == pytest.approx(1 - correlation, rel=0.1)


def test_frames_follow_each_other_by_so_many_and_begin_again_one_frame_later(footage):
    """Taking fewer frames is faster."""
    assert torch.equal(torch.diff(counted(footage, 4)[:10]), torch.full((9,), 4.0))
    longer = counted(footage, 8)
    assert longer[10] == longer[0] + 1
    slow, fast = (speed(frame_stream(footage, every, 10, seed=1)) for every in (1, 4))
    assert fast > 3 * slow


@pytest.fixture(scope="module")
def pair():
    """A smooth picture that moves 2 pixels right and 1 down: (1, 2, h, w)."""
    rows, columns = np.mgrid[0:40, 0:48].astype(np.float32)

    def picture(x, y):
        return 0.5 + 0.25 * np.sin((columns - x) / 4) + 0.2 * np.cos((rows - y) / 5)

    both = np.stack([picture(0, 0), picture(2, 1)])[None]
    return torch.from_numpy(both.astype(np.float32))


def flow(x, y):
    return torch.tensor([x, y], dtype=torch.float32)[None, :, None, None].expand(1, 2, 40, 48)


def test_the_true_flow_has_the_least_loss_and_the_first_cues_point_along_it(pair):
    true, still, back, turned = (
        photometric(flow(*by), pair) for by in ((2, 1), (0, 0), (-2, -1), (1, 2))
    )
    assert true < 0.25 * still
    assert true < min(back, turned)
    assert shown.roughness(flow(3, -1)) == 0
    assert shown.roughness(torch.randn(1, 2, 40, 48)) > 1
    cues = shown.motion_cues(pair)
    across = cues[0, 0][cues[0, 0].abs() > 0.5]
    assert cues.shape == (1, 5, 40, 48)
    assert float((across > 0).float().mean()) > 0.8
