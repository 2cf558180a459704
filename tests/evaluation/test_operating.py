"""Precision and recall of a reader's list from a chance on, against counting by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.dataset.tables import Instance
from actionspan.evaluation.operating import operating_points


def event(start, score, label=""):
    return {"segment": [start, start + 1.0], "score": score, **({"label": label} if label else {})}


def instance(start, label="a"):
    return Instance(start=start, end=start + 1.0, label=label)


def test_by_hand():
    events = {
        "one": [event(0, 0.9, "a"), event(5, 0.6, "a"), event(8, 0.6, "b")],
        "two": [event(0, 0.3, "a"), event(0.1, 0.2, "a"), event(4, 0.1, "b")],
        "not annotated": [event(0, 0.99, "a")],
    }
    truth = {"one": [instance(0), instance(8)], "two": [instance(0), instance(4, "b")]}
    points = operating_points(events, truth)
    assert points == {
        "a": [
            (0.9, 1.0, pytest.approx(1 / 3, abs=1e-4)),
            (0.6, 0.5, pytest.approx(1 / 3, abs=1e-4)),
            (0.3, pytest.approx(2 / 3, abs=1e-4), pytest.approx(2 / 3, abs=1e-4)),
            (0.2, 0.5, pytest.approx(2 / 3, abs=1e-4)),  # the same instance a second time
        ],
        "b": [(0.6, 0.0, 0.0), (0.1, 0.5, 1.0)],  # at 8 s it is an "a"
    }


def test_one_label_is_no_label():
    truth = {"one": [instance(0), instance(5)]}
    for label in ("", "a"):
        points = operating_points({"one": [event(0, 0.5, label)]}, truth)
        assert points == {"": [(0.5, 1.0, 0.5)]}
    assert operating_points({"one": []}, truth) == {}
    assert operating_points({"one": [event(0, 0.5)]}, {"one": []}) == {}


@given(st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.5, 0.7]), st.booleans()), min_size=1))
def test_points_are_what_counting_gives(rows):
    """Each event is alone, so it is right or not whatever its rank."""
    if not any(right for _, right in rows):
        return
    events = {"v": [event(2.0 * place, chance) for place, (chance, _) in enumerate(rows)]}
    truth = {"v": [instance(2.0 * place) for place, (_, right) in enumerate(rows) if right]}
    (points,) = operating_points(events, truth).values()
    expected = []
    for bar in sorted({chance for chance, _ in rows}, reverse=True):
        shown = [right for chance, right in rows if chance >= bar]
        expected.append((bar, sum(shown) / len(shown), sum(shown) / sum(r for _, r in rows)))
    assert np.allclose(points, expected, atol=1e-4)


def test_many_are_thinned_but_the_ends_stay():
    events = {"v": [event(2.0 * k, 0.9 - k / 1000) for k in range(300)]}
    (points,) = operating_points(events, {"v": [instance(0)]}).values()
    assert len(points) == 50
    assert (points[0].chance, points[-1].chance) == (0.9, 0.601)
