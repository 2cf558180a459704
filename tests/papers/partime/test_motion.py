"""The loss of an unlabelled flow is least for the true one."""

import numpy as np
import pytest
import torch

from actionspan_papers.partime.footage import motion_cues, photometric, roughness


@pytest.fixture
def pair():
    """A smooth picture that moves 2 pixels right and 1 down: (1, 2, h, w)."""
    rows, columns = np.mgrid[0:40, 0:48].astype(np.float32)

    def picture(x, y):
        return 0.5 + 0.25 * np.sin((columns - x) / 4) + 0.2 * np.cos((rows - y) / 5)

    both = np.stack([picture(0, 0), picture(2, 1)])[None]
    return torch.from_numpy(both.astype(np.float32))


def flow(x, y):
    return torch.tensor([x, y], dtype=torch.float32)[None, :, None, None].expand(1, 2, 40, 48)


def test_the_true_flow_has_the_least_loss(pair):
    true = photometric(flow(2, 1), pair)
    assert true < 0.25 * photometric(flow(0, 0), pair)
    assert true < photometric(flow(-2, -1), pair)
    assert true < photometric(flow(1, 2), pair)


def test_an_even_flow_is_not_rough(pair):
    assert roughness(flow(3, -1)) == 0
    assert roughness(torch.randn(1, 2, 40, 48)) > 1


def test_the_first_cues_point_where_the_picture_goes(pair):
    cues = motion_cues(pair)
    across = cues[0, 0][cues[0, 0].abs() > 0.5]
    assert cues.shape == (1, 5, 40, 48)
    assert float((across > 0).float().mean()) > 0.8
