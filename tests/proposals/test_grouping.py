"""TAG: the slow version, and proposals of hand-made signals."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from actionspan.proposals import group_actionness
from actionspan.proposals.grouping import group_proposals
from actionspan.proposals.settings import GroupingSettings, SuppressionSettings
from proposals import oracle


@given(
    st.lists(st.integers(0, 8).map(lambda level: level / 8), max_size=20),
    st.lists(st.sampled_from([0.125, 0.3, 0.5, 0.9]), max_size=3),
    st.lists(st.sampled_from([0.05, 0.3, 0.5, 0.75, 1.0]), max_size=3),
)
@example([0, 1, 1, 0, 1], [0.5], [0.75])
def test_equal_to_the_slow_one(signal, levels, tolerances):
    found = group_actionness(signal, levels, tolerances)
    assert [tuple(pair) for pair in found.tolist()] == sorted(
        oracle.groups(signal, levels, tolerances)
    )


def test_a_signal_that_is_not_stretched_keeps_its_levels():
    signal = np.array([0.2, 0.6, 0.2, 0.2])
    segments, scores = group_proposals(signal, 8.0, stretch=False)
    found = dict(zip(map(tuple, segments.tolist()), scores.tolist(), strict=True))
    assert found == {(2.0, 4.0): pytest.approx(0.6), (0.0, 8.0): pytest.approx(0.3)}
    assert group_proposals(signal / 20, 8.0, stretch=False)[0].shape == (0, 2)
    for steps in (1, 4):
        segments, _ = group_proposals(np.full(steps, 0.5), 8.0, stretch=False)
        assert segments.tolist() == [[0.0, 8.0]]


def test_proposals_are_in_seconds_and_scored_by_the_mean_inside():
    signal = np.zeros(100)
    signal[20:40] = 8.0
    signal[60:70] = 4.0
    segments, scores = group_proposals(signal + 3, 50.0)
    assert segments[0].tolist() == [10.0, 20.0]
    found = dict(zip(map(tuple, segments.tolist()), scores.tolist(), strict=True))
    # the last is both with the gap: 20 bins of 1 and 10 of a half, in 50
    expected = {(10.0, 20.0): 1.0, (30.0, 35.0): 0.5, (10.0, 35.0): 0.5}
    assert found == pytest.approx(expected)


def test_nothing_that_stands_out_is_no_proposal_and_no_more_are_kept_than_asked_for():
    for signal in ([], [2.0], [1.0] * 100):
        segments, scores = group_proposals(signal, 10.0)
        assert (segments.shape, scores.shape) == ((0, 2), (0,))
    signal, settings = np.random.default_rng(0).random(100), GroupingSettings(level_step=0.1)
    segments, scores = group_proposals(signal, 10.0, settings, SuppressionSettings(keep=7))
    assert segments.shape == (7, 2)
    assert (np.diff(scores) <= 0).all()
    with pytest.raises(ValueError, match="signal"):
        group_proposals([0.0, np.nan], 1.0)
    with pytest.raises(ValueError, match="signal"):
        group_actionness([0.0, np.inf], [0.5], [0.5])
