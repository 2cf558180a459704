"""Events for a reader: distinct, with chances that mean what they say, down to the best bar."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from actionspan.proposals.segments import temporal_iou
from actionspan.proposals.selection import (
    Calibration,
    calibrate,
    distinct_events,
    right_events,
    shown_events,
)
from actionspan.proposals.settings import EventSettings


def random_cells(seed, count):
    random = np.random.default_rng(seed)
    starts = random.uniform(0, 30, count)
    cells = np.stack([starts, starts + random.uniform(0.5, 12, count)], axis=1)
    return cells, random.exponential(size=count) ** 3


@given(st.integers(0, 2**31), st.integers(1, 80), st.floats(0, 0.9), st.integers(1, 12))
def test_events_are_distinct_and_the_best_first(seed, count, overlap, events):
    cells, density = random_cells(seed, count)
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
    # the first is the cell where most instances are expected to be found
    reached = (temporal_iou(cells, cells) >= 0.5) @ density
    first = np.flatnonzero((cells == segments[0]).all(axis=1))[0]
    assert reached[first] == pytest.approx(reached.max(), rel=1e-5)
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


def test_equal_chances_are_shown_together_or_not_at_all():
    """One of six with the same chance is right: no bar shows it without the others."""
    gains = np.array([4.0, *[1.0] * 6, 0.1, 0.01])
    right = np.array([1.0, 1.0, *[0.0] * 7])
    fitted = calibrate(gains, right, 3)
    chances = fitted.chance(gains)
    scores = {bar: f1(chances, right, 3, bar) for bar in chances.tolist()}
    assert max(scores, key=scores.__getitem__) == fitted.bar == chances[0]


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


def test_without_events_everything_is_shown():
    assert calibrate(np.zeros(0), np.zeros(0), 3) == Calibration()
    assert Calibration().bar == 0


def test_events_below_the_bar_are_not_shown():
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
