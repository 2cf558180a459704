"""Runs of shots as segments, and the share of what is expected that lies at them."""

import numpy as np
import pytest

from actionspan.arrays import temporal_iou
from actionspan.proposals.shots import MOST_SHOTS, on_shots, share_on_cuts, shot_runs

CUTS = np.array([[2.0, 0.9], [4.0, 0.4], [7.0, 0.6]])  # shots of 2, 2, 3 and 1 seconds


def test_a_run_is_worth_its_weaker_end_and_less_with_a_cut_inside():
    runs, worth = shot_runs(CUTS, 8.0)
    assert len(runs) == 4 + 3 + 2 + 1
    found = {tuple(run): value for run, value in zip(runs.tolist(), worth, strict=True)}
    assert found[0, 2] == pytest.approx(np.exp(0.9))
    assert found[2, 4] == pytest.approx(np.exp(0.4))
    assert found[0, 4] == pytest.approx(np.exp(0.4 - 4 * 0.9))
    assert found[0, 8] == pytest.approx(np.exp(1 - 4 * 0.9))


def test_at_most_six_shots_are_joined_and_a_video_without_cuts_is_one():
    cuts = np.column_stack([np.arange(1.0, 12), np.full(11, 0.5)])
    runs, _ = shot_runs(cuts, 12.0)
    assert np.diff(runs).max() == MOST_SHOTS == 6
    assert len(runs) == sum(range(7, 13))
    runs, worth = shot_runs(np.zeros((0, 2)), 5.0)
    assert runs.tolist() == [[0, 5]]
    assert worth == pytest.approx([np.e])


def by_all_pairs(cells, density, cuts, duration, share):
    """What `on_shots` gives, without leaving out any pair."""
    runs, worth = shot_runs(cuts[cuts[:, 1] >= 0.3], duration)
    overlap = temporal_iou(cells, runs)
    weight = np.where(overlap >= 0.3, worth * np.exp((overlap - 1) / 0.2), 0)
    total = weight.sum(axis=1)
    taken = np.where(total > 0, share * density, 0)
    moved = (weight * (taken / np.where(total > 0, total, 1))[:, None]).sum(axis=0)
    return np.concatenate([cells, runs]), np.concatenate([density - taken, moved])


@pytest.mark.parametrize(("count", "share"), [(0, 0.7), (1, 0.2), (5, 1.0), (200, 0.7)])
def test_pairs_that_are_left_out_count_for_nothing(count, share):
    """Of segments of every length, so that each block is near some runs alone."""
    rng = np.random.default_rng(count)
    starts, lengths = rng.uniform(0, 600, 4000), np.exp(rng.uniform(-2, 5, 4000))
    cells = np.stack([starts, np.minimum(starts + lengths, 601)], axis=1)
    density = rng.exponential(size=4000)
    cuts = np.column_stack([np.sort(rng.uniform(0, 601, count)), rng.uniform(0.2, 1, count)])
    found = on_shots(cells, density, cuts, 601.0, share)
    if (cuts[:, 1] >= 0.3).any():
        wanted = by_all_pairs(cells, density, cuts, 601.0, share)
        np.testing.assert_array_equal(found[0], wanted[0])
        np.testing.assert_allclose(found[1], wanted[1], atol=1e-9)
    else:
        assert found[1] is density


@pytest.mark.parametrize("cuts", [np.zeros((0, 2)), np.array([[3.0, 0.29]])])
def test_without_a_change_of_colours_nothing_is_a_shot(cuts):
    cells, density = np.array([[1.0, 3.0]]), np.array([0.5])
    segments, expected = on_shots(cells, density, cuts, 8.0, share=1.0)
    assert segments is cells
    assert expected is density
    assert share_on_cuts(cells, cuts, 8.0) == (0, 0)


def test_instances_that_begin_and_end_at_cuts_are_counted():
    instances = np.array([[0.1, 2.2], [2.0, 4.0], [4.0, 6.0], [7.2, 8.0], [2.5, 3.5]])
    assert share_on_cuts(instances, CUTS, 8.0) == (3, 5)
    assert share_on_cuts(np.zeros((0, 2)), CUTS, 8.0) == (0, 0)
