"""tIoU, selection against plain loops, and distinct events whose chances mean what they say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from actionspan.arrays import temporal_iou
from actionspan.proposals.selection import (
    Calibration,
    calibrate,
    distinct,
    distinct_events,
    found,
    recall_reached,
    right_events,
    select,
    shares_much,
    shown_events,
    typical_extents,
)
from actionspan.proposals.settings import EventSettings, SelectionSettings
from proposals.oracle import iou


def random_cells(seed, count, power=1):
    random = np.random.default_rng(seed)
    starts = random.uniform(0, 20, count)
    cells = np.stack([starts, starts + random.uniform(0.5, 10, count)], axis=1)
    return cells, random.exponential(size=count) ** power


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


def test_only_the_likeliest_count_and_only_the_worthiest_are_chosen_from():
    cells = np.array([[0.0, 10.0], [20.0, 30.0], [40.0, 50.0]])
    density = np.array([1.0, 3.0, 2.0])
    chosen, gains = select(cells, density, SelectionSettings(counted=2))
    assert chosen.tolist() == [1, 2]
    np.testing.assert_allclose(gains, [3, 2])
    chosen, _ = select(cells, density, SelectionSettings(considered=1))
    assert chosen.tolist() == [1]


def test_without_any_density_nothing_is_worth_anything_and_a_wrong_one_is_refused():
    cells, density = random_cells(1, 5)
    _, gains = select(cells, np.zeros(5), SelectionSettings(proposals=3))
    assert gains.tolist() == [0, 0, 0]
    np.testing.assert_array_equal(typical_extents(cells, cells, np.zeros(5)), cells)
    for wrong in (-1.0, np.nan, np.inf):
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
    assert found(ends).tolist() == [0, 0, 1, 1, 1, 1, 1]


def test_two_segments_share_much_by_the_shorter_of_both():
    segments = np.array([[0.0, 4.0], [10.0, 30.0]])
    others = np.array([[3.0, 7.0], [1.0, 5.0], [12.0, 13.0]])
    much = [[False, True, False], [False, False, True]]
    np.testing.assert_array_equal(shares_much(segments, others, 0.5), much)
    assert distinct(np.array([[0.0, 4.0], [3.0, 7.0], [1.0, 5.0]]), 0.5, 9) == [0, 1]
    assert distinct(np.array([[0.0, 4.0], [3.0, 7.0], [1.0, 5.0]]), 0.5, 1) == [0]


SEGMENT = st.tuples(st.floats(0, 1e4), st.floats(0, 1e4)).map(sorted)


@given(st.lists(SEGMENT, max_size=5), st.lists(SEGMENT, max_size=5))
def test_tiou_is_symmetric_in_range_and_equal_to_the_slow_one(first, second):
    matrix = temporal_iou(first, second)
    assert matrix.shape == (len(first), len(second))
    assert ((matrix >= 0) & (matrix <= 1)).all()
    assert (matrix == temporal_iou(second, first).T).all()
    slow = [[iou(one, two) for two in second] for one in first]
    np.testing.assert_allclose(matrix, np.reshape(slow, matrix.shape), rtol=1e-6, atol=1e-6)
    itself = temporal_iou(first, first).diagonal()
    assert itself.tolist() == [float(start < end) for start, end in first]


def medians(segments, cells, density):
    """Return the least start and end with half of what is expected around at or before them."""
    for segment in segments:
        near = temporal_iou([segment], cells)[0] >= 0.5
        ends = []
        for side in cells[near].T:
            below = [density[near][side <= each].sum() for each in np.sort(side)]
            ends.append(np.sort(side)[np.array(below) >= density[near].sum() / 2 - 1e-9].min())
        yield np.array(ends)


@given(st.integers(0, 2**31), st.integers(1, 80), st.floats(0, 0.9), st.integers(1, 12))
def test_events_are_distinct_and_the_best_first(seed, count, overlap, events):
    cells, density = random_cells(seed, count, power=3)
    settings = EventSettings(events=events, overlap=overlap)
    segments, gains = distinct_events(cells, density, settings)
    assert 1 <= len(segments) == len(gains) <= events
    assert (np.diff(gains) <= 0).all()
    lengths = segments[:, 1] - segments[:, 0]
    for one in range(len(segments)):
        for two in range(one):
            shared = min(segments[one, 1], segments[two, 1])
            shared -= max(segments[one, 0], segments[two, 0])
            assert shared <= overlap * min(lengths[one], lengths[two]) + 1e-9
    # the first is where those lie that the best cell finds
    reached = (temporal_iou(cells, cells) >= 0.5) @ density
    best = np.flatnonzero(reached > reached.max() * (1 - 1e-5))
    assert any(np.array_equal(segments[0], each) for each in medians(cells[best], cells, density))
    assert gains[0] == pytest.approx(reached.max(), rel=1e-5)


def test_an_instance_is_right_once_and_an_event_takes_the_nearest():
    instances = np.array([[0.0, 10.0], [12.0, 20.0], [12.0, 21.0]])
    events = np.array([[0.0, 9.0], [0.0, 10.0], [12.0, 21.0], [12.0, 21.0], [12.0, 21.0]])
    assert right_events(events, instances).tolist() == [1, 0, 1, 1, 0]
    just, below = [[0.0, 5.0]], [[0.0, 4.99]]
    assert right_events(np.array(just), instances).tolist() == [1]
    assert right_events(np.array(below), instances).tolist() == [0]
    assert right_events(events, np.zeros((0, 2))).tolist() == [0] * 5
    assert right_events(np.zeros((0, 2)), instances).tolist() == []


def test_calibration_recovers_the_chances_of_events(rng):
    gains = np.exp(rng.uniform(-5, 1, 20000))
    chances = expit(0.4 + 1.3 * np.log(gains))
    right = (rng.random(20000) < chances).astype(float)
    fitted = calibrate(gains, right, 20000)
    assert fitted.offset == pytest.approx(0.4, abs=0.1)
    assert fitted.slope == pytest.approx(1.3, abs=0.1)
    np.testing.assert_allclose(fitted.chance(gains), chances, atol=0.03)


@given(st.integers(0, 2**31), st.integers(1, 60))
def test_a_larger_gain_is_never_a_smaller_chance(seed, count):
    random = np.random.default_rng(seed)
    gains = random.exponential(size=count)
    right = (random.random(count) < 0.5).astype(float)
    fitted = calibrate(gains, right, count)
    assert fitted.slope >= 0
    found = fitted.chance(np.sort(gains))
    assert (np.diff(found) >= 0).all()
    assert ((found > 0) & (found < 1)).all()


def f1(chances, right, instances, bar) -> float:
    shown = chances >= bar
    return 2 * right[shown].sum() / (shown.sum() + instances)


@given(st.integers(0, 2**31), st.integers(1, 60), st.booleans())
def test_no_other_bar_has_a_better_f1_score(seed, count, ties):
    random = np.random.default_rng(seed)
    gains = random.exponential(size=count)
    if ties:
        gains = np.ceil(2 * gains) / 2
    right = (random.random(count) < gains / 3).astype(float)
    instances = int(right.sum()) + int(random.integers(1, 20))
    fitted = calibrate(gains, right, instances)
    chances = fitted.chance(gains)
    best = max(f1(chances, right, instances, bar) for bar in chances)
    assert f1(chances, right, instances, fitted.bar) == pytest.approx(best)


@pytest.mark.parametrize(("instances", "most"), [(0.5, 10), (5.0, 10), (5.1, 11), (20.0, 40)])
def test_a_video_has_room_for_twice_the_events_that_it_is_expected_to_hold(instances, most):
    """Sixty places that share nothing, each as likely as the others."""
    starts = 2.0 * np.arange(60)
    cells = np.stack([starts, starts + 1], axis=1)
    density = np.full(60, instances / 60)
    segments, gains = distinct_events(cells, density, EventSettings())
    assert len(segments) == len(gains) == most
    segments, _ = distinct_events(cells, density, EventSettings(events=7))
    assert len(segments) == 7


def test_events_below_the_bar_are_not_shown():
    assert calibrate(np.zeros(0), np.zeros(0), 3) == Calibration()
    assert Calibration().bar == 0, "without events everything is shown"
    cells = np.array([[0.0, 1.0], [10.0, 11.0], [20.0, 21.0]])
    density = np.array([2.0, 1.0, 0.5])
    calibration = Calibration(offset=0.0, slope=1.0, bar=0.5)
    segments, chances = shown_events(cells, density, calibration, EventSettings())
    np.testing.assert_array_equal(segments, cells[:2])
    np.testing.assert_allclose(chances, [2 / 3, 1 / 2])
    for bar, count in ((0.0, 3), (0.4, 2), (0.6, 1), (1.0, 0)):
        segments, _ = shown_events(cells, density, calibration, EventSettings(bar=bar))
        assert len(segments) == count
    segments, _ = shown_events(cells, density, calibration, EventSettings(events=1, bar=0.0))
    np.testing.assert_array_equal(segments, cells[:1])
