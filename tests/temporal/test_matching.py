"""The boundary-matching map: its cells, their truth by hand, and sampling as BMN does it."""

import numpy as np
import pytest
import torch

from actionspan.proposals.segments import temporal_iou
from actionspan.temporal.bmn import (
    FINER,
    REACH,
    SAMPLES,
    cell_overlaps,
    cell_steps,
    match,
    sampling_matrix,
)


def test_cells_are_pairs_of_a_start_and_a_later_end():
    starts, ends = cell_steps(4)
    assert starts.tolist() == [[0, 1, 2, 3]] * 3
    assert ends.tolist() == [[1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6]]


def test_the_truth_of_cells_by_hand():
    # four steps, middles at 0.5 to 3.5; the instance 0.5…2.5, and one of no length that fills up
    instances = torch.tensor([[[0.5, 2.5], [0.0, 0.0]]])
    (found,) = cell_overlaps(instances, 4)
    expected = [[1 / 2, 1 / 2, 0, 0], [1, 1 / 3, 0, 0], [2 / 3, 0, 0, 0]]
    torch.testing.assert_close(found, torch.tensor(expected))


def test_the_truth_of_a_cell_is_that_of_the_instance_it_fits_best():
    random = np.random.default_rng(0)
    instances = np.sort(random.uniform(-3, 23, (2, 3, 2)), axis=2)
    found = cell_overlaps(torch.from_numpy(instances), 20).numpy()
    starts, ends = (each.numpy() for each in cell_steps(20))
    for row, segments in zip(found, instances, strict=True):
        cells = np.stack([starts + 0.5, ends + 0.5], axis=2).reshape(-1, 2)
        expected = temporal_iou(cells, segments).max(axis=1).reshape(starts.shape)
        np.testing.assert_allclose(row, np.where(ends < 20, expected, 0), atol=1e-7)


def slow_samples(sequence, start, end):
    """Return (W, SAMPLES) of a sequence (W, T), point by point."""
    samples = np.zeros((len(sequence), SAMPLES))
    padded = np.pad(sequence, ((0, 0), (1, 1)))  # falls to 0 over a step beyond each end
    places = np.arange(-1, sequence.shape[1] + 1)
    first, whole = start - REACH * (end - start), (1 + 2 * REACH) * (end - start)
    for sample in range(SAMPLES):
        for fine in range(FINER):
            place = first + whole * (sample * FINER + fine + 0.5) / (SAMPLES * FINER)
            samples[:, sample] += [np.interp(place, places, row) / FINER for row in padded]
    return samples


@pytest.mark.parametrize("steps", [2, 13])
def test_the_map_is_that_of_sampling_first_and_convolving_then(steps):
    torch.manual_seed(0)
    maps = torch.randn(2, 3, steps, dtype=torch.float64)
    kernel = torch.randn(4, 3, SAMPLES, dtype=torch.float64)
    found = match(maps, kernel)
    starts, ends = cell_steps(steps)
    assert found.shape == (2, 4, *starts.shape)
    for video in range(2):
        for row, column in np.ndindex(*starts.shape):
            start, end = int(starts[row, column]), int(ends[row, column])
            cell = found[video, :, row, column]
            if end < steps:
                samples = slow_samples(maps[video].numpy(), start, end)
                expected = np.einsum("owk,wk->o", kernel.numpy(), samples)
                np.testing.assert_allclose(cell, expected, atol=1e-10)
            else:
                assert not cell.any()


def test_a_constant_sequence_has_its_value_within_the_video():
    (row,) = [10 * 100 + 40]  # step 40 to 51, with half of it to each side
    samples = sampling_matrix(100, torch.float32).to_dense()[row].view(SAMPLES, 100)
    torch.testing.assert_close(samples.sum(dim=1), torch.ones(SAMPLES))


def test_its_gradient_is_that_of_finite_differences():
    torch.manual_seed(0)
    maps = torch.randn(1, 2, 5, dtype=torch.float64, requires_grad=True)
    kernel = torch.randn(2, 2, SAMPLES, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(match, (maps, kernel))
