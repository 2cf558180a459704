"""Selection against plain loops: the greedy choice, what it is worth, and how little is lost."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.proposals.segments import temporal_iou
from actionspan.proposals.selection import distinct, found, recall_reached, select, shares_much
from actionspan.proposals.settings import SelectionSettings


def random_cells(seed, count):
    random = np.random.default_rng(seed)
    starts = random.uniform(0, 20, count)
    cells = np.stack([starts, starts + random.uniform(0.5, 10, count)], axis=1)
    return cells, random.exponential(size=count)


def worth(cells, density, chosen, reach) -> float:
    """Return the expected recall of a list, by its definition."""
    if not len(chosen):
        return 0.0
    reached = reach(temporal_iou(cells[list(chosen)], cells).astype(np.float32))
    return float(reached.max(axis=0) @ density)


REACHES = pytest.mark.parametrize("reach", [recall_reached, found])


@REACHES
@pytest.mark.parametrize("seed", range(5))
def test_each_choice_is_the_best_that_is_left(seed, reach):
    """Try every cell at every turn; two that find the same cells are a tie for `found`."""
    cells, density = random_cells(seed, 40)
    chosen, gains = select(cells, density, SelectionSettings(proposals=8), reach)
    for turn, (cell, gain) in enumerate(zip(chosen, gains, strict=True)):
        before = chosen[:turn]
        rest = [other for other in range(40) if other not in before]
        lists = {other: worth(cells, density, [*before, other], reach) for other in rest}
        best = max(lists.values())
        assert lists[cell] == pytest.approx(best, rel=1e-5)
        assert gain == pytest.approx(best - worth(cells, density, before, reach), abs=1e-4)
        if reach is recall_reached:
            assert cell == max(lists, key=lists.__getitem__)


@given(st.integers(0, 2**31), st.integers(1, 60), st.sampled_from([recall_reached, found]))
def test_gains_never_rise_and_add_up_to_the_worth_of_the_list(seed, count, reach):
    cells, density = random_cells(seed, count)
    chosen, gains = select(cells, density, SelectionSettings(proposals=20), reach)
    assert len(chosen) == len(set(chosen.tolist())) == min(count, 20)
    assert (np.diff(gains) <= 0).all()
    assert (gains >= 0).all()
    for length in range(1, len(chosen) + 1):
        expected = worth(cells, density, chosen[:length], reach)
        assert gains[:length].sum() == pytest.approx(expected, rel=1e-4, abs=1e-5)


@REACHES
@pytest.mark.parametrize("seed", range(6))
def test_every_beginning_is_worth_two_thirds_of_the_best_list_of_its_length(seed, reach):
    cells, density = random_cells(100 + seed, 11)
    chosen, gains = select(cells, density, SelectionSettings(proposals=4), reach)
    for length in range(1, 5):
        lists = itertools.combinations(range(11), length)
        best = max(worth(cells, density, one, reach) for one in lists)
        assert best + 1e-5 >= gains[:length].sum() >= (1 - 1 / math.e) * best - 1e-5


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_the_cells_is_nothing_to_the_choice(seed):
    cells, density = random_cells(seed, 50)
    order = np.random.default_rng(9).permutation(50)
    settings = SelectionSettings(proposals=10)
    chosen, gains = select(cells, density, settings)
    moved, moved_gains = select(cells[order], density[order], settings)
    np.testing.assert_array_equal(cells[order][moved], cells[chosen])
    np.testing.assert_allclose(moved_gains, gains, rtol=1e-5, atol=1e-6)


def test_the_copy_of_a_chosen_cell_adds_nothing():
    cells, density = random_cells(3, 12)
    alone, gains = select(cells, density, SelectionSettings(proposals=12))
    twice, doubled = np.repeat(cells, 2, axis=0), np.repeat(density / 2, 2)
    chosen, copied = select(twice, doubled, SelectionSettings(proposals=24))
    # what adds something is the same as without the copies
    adds = gains > 1e-4
    np.testing.assert_array_equal(chosen[: adds.sum()] // 2, alone[adds])
    np.testing.assert_allclose(copied[: adds.sum()], gains[adds], rtol=1e-4)
    np.testing.assert_allclose(copied[12:], 0, atol=1e-4)


def test_only_the_likeliest_count_and_only_the_worthiest_are_chosen_from():
    cells = np.array([[0.0, 10.0], [20.0, 30.0], [40.0, 50.0]])
    density = np.array([1.0, 3.0, 2.0])
    chosen, gains = select(cells, density, SelectionSettings(counted=2))
    assert chosen.tolist() == [1, 2]
    np.testing.assert_allclose(gains, [3, 2])
    chosen, _ = select(cells, density, SelectionSettings(considered=1))
    assert chosen.tolist() == [1]


def test_without_any_density_nothing_is_worth_anything():
    cells, _ = random_cells(1, 5)
    _, gains = select(cells, np.zeros(5), SelectionSettings(proposals=3))
    assert gains.tolist() == [0, 0, 0]


@pytest.mark.parametrize("wrong", [-1.0, np.nan, np.inf])
def test_a_density_that_cannot_be_one_is_refused(wrong):
    cells, density = random_cells(1, 5)
    density[2] = wrong
    with pytest.raises(ValueError, match="density: numbers of 0 or more"):
        select(cells, density)


def test_recall_reached_is_the_share_of_thresholds_on_a_line():
    thresholds = np.linspace(0.5, 0.95, 10)
    middles = (thresholds + 0.025).astype(np.float32)
    shares = (middles[:, None] >= thresholds).mean(axis=1)
    np.testing.assert_allclose(recall_reached(middles), shares, atol=1e-6)
    ends = np.array([0, 0.4999, 0.5, 0.95, 0.975, 0.99, 1], np.float32)
    np.testing.assert_allclose(recall_reached(ends), [0, 0, 0.05, 0.95, 1, 1, 1], atol=1e-6)
    every = recall_reached(np.linspace(0, 1, 500, dtype=np.float32))
    assert (np.diff(every) >= 0).all()


def test_an_instance_is_found_from_half_on():
    tiou = np.array([0.0, 0.4999, 0.5, 1.0], np.float32)
    assert found(tiou).tolist() == [0, 0, 1, 1]


def test_two_segments_share_much_by_the_shorter_of_both():
    segments = np.array([[0.0, 4.0], [10.0, 30.0]])
    others = np.array([[3.0, 7.0], [1.0, 5.0], [12.0, 13.0]])
    much = [[False, True, False], [False, False, True]]
    np.testing.assert_array_equal(shares_much(segments, others, 0.5), much)
    assert distinct(np.array([[0.0, 4.0], [3.0, 7.0], [1.0, 5.0]]), 0.5, 9) == [0, 1]
    assert distinct(np.array([[0.0, 4.0], [3.0, 7.0], [1.0, 5.0]]), 0.5, 1) == [0]
