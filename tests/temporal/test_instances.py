"""Instances come back from the distances of steps; tIoU against the one of proposals."""

import numpy as np
import pytest
import torch

from actionspan.proposals.segments import temporal_iou
from actionspan.temporal.labels import video_targets
from actionspan.temporal.loss import instances_of, tiou


def targets(*segments, steps=20):
    rows = np.array(segments, np.float64).reshape(-1, 2)
    return torch.from_numpy(video_targets(np.zeros((steps, 3), np.float32), rows, 0))


@pytest.mark.parametrize(
    "segments",
    [
        [],
        [(2.2, 7.9)],
        [(2.25, 7.5), (7.5, 9.25)],  # one ends where the next begins
        [(-3.0, 4.0), (15.0, 26.0)],  # of a window, beyond its ends
        [(0.0, 20.0)],
    ],
)
def test_instances_come_back(segments):
    (found,) = instances_of(targets(*segments)[None])
    expected = np.array(segments, np.float64).reshape(-1, 2)
    np.testing.assert_allclose(found[: len(expected)], expected, atol=1e-5)
    assert len(found) == max(1, len(expected))
    assert not found[len(expected) :].any()


def test_an_instance_within_a_longer_one_leaves_both():
    (found,) = instances_of(targets((1.0, 19.0), (6.0, 9.0))[None])
    assert sorted({tuple(row) for row in found.tolist()}) == [(1.0, 19.0), (6.0, 9.0)]


def test_rows_are_filled_up_and_what_has_no_middle_is_lost():
    one, two = targets((3.0, 8.0)), targets((1.0, 4.0), (5.6, 6.4), (10.0, 12.0), (12.0, 15.0))
    found = instances_of(torch.stack([one, two]))
    assert found.tolist() == [
        [[3.0, 8.0], [0.0, 0.0], [0.0, 0.0]],
        [[1.0, 4.0], [10.0, 12.0], [12.0, 15.0]],
    ]


def test_overlaps_are_those_of_proposals():
    random = np.random.default_rng(0)
    one, other = (np.sort(random.integers(0, 12, (count, 2)), axis=1) for count in (40, 30))
    first, second = torch.from_numpy(one)[:, None].double(), torch.from_numpy(other)[None].double()
    found = tiou(first[..., 0], first[..., 1], second[..., 0], second[..., 1])
    np.testing.assert_allclose(found, temporal_iou(one, other))
