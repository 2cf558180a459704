"""The baselines: what they propose, in which order, and what that depends on."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actionspan.dataset.tables import Annotation, Instance
from actionspan.evaluation.baseline import (
    BaselineSettings,
    random_proposals,
    relative_lengths,
    sliding_windows,
)
from actionspan.proposals.grouping import group_proposals
from actionspan.proposals.settings import SuppressionSettings

DEFAULT = BaselineSettings()
SOFT_NMS = SuppressionSettings()


def motion_proposals(signal, duration, suppression):
    """What `baseline --method difference` makes of a video's frame differences."""
    return group_proposals(signal, duration, None, suppression)


def actionness_proposals(signal, duration, suppression):
    """What `baseline --method tag` makes of a video's actionness."""
    return group_proposals(signal, duration, None, suppression, stretch=False)


def assert_well_formed(segments, scores, duration, most):
    assert segments.shape == (len(scores), 2)
    assert len(scores) <= most
    assert (segments[:, 0] >= 0).all()
    assert (segments[:, 1] <= duration * (1 + 1e-12)).all()
    assert (segments[:, 0] < segments[:, 1]).all()
    assert (np.diff(scores) <= 0).all()
    assert (scores >= 0).all()


@settings(max_examples=25)
@given(
    duration=st.floats(0.1, 1e4),
    proposals=st.integers(1, 120),
    overlap=st.floats(0, 0.9),
    shortest=st.floats(0.005, 1),
    seed=st.integers(0, 9),
)
def test_all_make_ordered_segments_inside_the_video(duration, proposals, overlap, shortest, seed):
    chosen = BaselineSettings(
        proposals=proposals, seed=seed, overlap=overlap, shortest_window=shortest
    )
    motion = np.random.default_rng(seed).uniform(size=100)
    for made in (
        random_proposals("video", duration, chosen),
        sliding_windows(duration, np.array([0.1, 0.1, 0.5]), chosen),
        motion_proposals(motion, duration, SuppressionSettings(keep=proposals)),
        actionness_proposals(motion, duration, SuppressionSettings(keep=proposals)),
    ):
        assert_well_formed(*made, duration, proposals)


def test_random_depends_on_seed_and_id_alone():
    segments, scores = random_proposals("a", 10, DEFAULT)
    again, _ = random_proposals("a", 10, DEFAULT)
    np.testing.assert_array_equal(segments, again)
    for other in (
        random_proposals("b", 10, DEFAULT),
        random_proposals("a", 10, BaselineSettings(seed=2)),
    ):
        assert not np.array_equal(segments, other[0])
    assert len(scores) == 100


def test_random_is_uniform_before_it_is_cut():
    many = BaselineSettings(proposals=40_000)
    segments, _ = random_proposals("a", 10, many)
    inside = (segments[:, 0] > 0) & (segments[:, 1] < 10)
    # centre U(0, 1), length U(0, 1): it lies inside where length/2 < centre < 1 - length/2.
    assert inside.mean() == pytest.approx(0.5, abs=0.01)


def test_windows_take_the_training_lengths_first():
    typical = np.full(40, 0.25)
    segments, _ = sliding_windows(80, typical, DEFAULT)
    first = segments[:9]
    np.testing.assert_allclose(first[:, 1] - first[:, 0], 20)
    assert first[:, 0].min() == 0
    assert first[:, 1].max() == 80


def test_windows_without_training_go_from_the_longest_to_the_shortest():
    segments, scores = sliding_windows(64, np.empty(0), DEFAULT)
    lengths = segments[:, 1] - segments[:, 0]
    assert lengths[0] == 64
    assert (np.diff(lengths) <= 1e-9).all()
    assert scores[0] == 1


def test_windows_overlap_at_least_as_asked_and_cover_the_video():
    settings_ = BaselineSettings(overlap=0.5, proposals=1000)
    segments, _ = sliding_windows(1, np.empty(0), settings_)
    length = segments[:, 1] - segments[:, 0]
    for scale in np.unique(length.round(9)):
        mine = np.sort(segments[length.round(9) == scale, 0])
        assert mine[0] == 0
        assert mine[-1] + scale == pytest.approx(1)
        assert (np.diff(mine) <= 0.5 * scale + 1e-9).all()


def test_the_first_windows_of_a_length_are_spread_over_the_video():
    many = np.full(1000, 0.02)
    segments, _ = sliding_windows(100, many, BaselineSettings(proposals=16, shortest_window=0.02))
    gaps = np.diff(np.sort(segments[:, 0]))
    assert gaps.max() < 14
    assert segments[:, 0].max() > 80


def test_motion_finds_the_two_bursts():
    signal = np.full(100, 0.01)
    signal[20:30] = 0.2
    signal[60:65] = 0.3
    segments, _ = motion_proposals(signal, 50, SOFT_NMS)
    found = {tuple(row) for row in segments.round(6).tolist()}
    assert {(10.0, 15.0), (30.0, 32.5)} <= found


def test_still_pictures_have_no_motion_proposals():
    segments, scores = motion_proposals(np.zeros(100), 50, SOFT_NMS)
    assert segments.shape == (0, 2)
    assert scores.shape == (0,)


def test_tag_takes_actionness_as_it_is():
    actionness = np.full(50, 0.3)
    actionness[10:20] = 0.9
    segments, scores = actionness_proposals(actionness, 100, SOFT_NMS)
    assert segments[0].tolist() == [20, 40]
    assert scores[0] == pytest.approx(0.9)
    # at levels up to 0.3 all of the video is one basin, whose mean is 0.42
    found = dict(zip(map(tuple, segments.tolist()), scores, strict=True))
    assert found[0, 100] == pytest.approx(0.42)
    # a video that is action all along is a proposal; one that is nowhere has none
    assert actionness_proposals(np.full(50, 0.8), 100, SOFT_NMS)[0].tolist() == [[0, 100]]
    assert actionness_proposals(np.full(50, 0.01), 100, SOFT_NMS)[0].shape == (0, 2)


def test_tag_takes_any_number_of_steps():
    for steps in (1, 7, 1234):
        segments, _ = actionness_proposals(np.full(steps, 0.6), 12.5, SOFT_NMS)
        assert segments.tolist() == [[0, 12.5]]


def test_long_lists_hold_what_there_is():
    many = BaselineSettings(proposals=1500)
    segments, scores = random_proposals("a", 200, many)
    assert len(np.unique(segments, axis=0)) == len(scores) == 1500
    # at 0.6 overlap there are no more windows than these; a larger overlap makes more
    segments, scores = sliding_windows(200, np.empty(0), many)
    windows = sum(int(np.ceil((2 ** (i / 2) - 1) / 0.4 - 1e-9)) + 1 for i in range(12))
    assert len(np.unique(segments.round(9), axis=0)) == len(scores) == windows < 1500
    assert (scores > 0).all()
    dense = BaselineSettings(proposals=1500, overlap=0.95)
    segments, scores = sliding_windows(200, np.empty(0), dense)
    assert len(np.unique(segments.round(9), axis=0)) == len(scores) == 1500
    rng = np.random.default_rng(0)
    segments, scores = actionness_proposals(
        rng.uniform(size=1000), 200, SuppressionSettings(keep=1500)
    )
    assert len(np.unique(segments, axis=0)) == len(scores) == 1500


def test_lengths_come_from_the_training_subset_alone():
    half = (Instance(start=1, end=6, label="x"),)
    known = [
        Annotation(video_id="a", subset="training", duration_seconds=10, instances=half),
        Annotation(video_id="b", subset="validation", duration_seconds=20, instances=half),
    ]
    assert relative_lengths(known).tolist() == [0.5]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"proposals": 0}, "proposals 0: from 1 to 100000"),
        ({"seed": -1}, "seed -1: at least 0"),
        ({"overlap": 1.0}, "overlap 1.0: from 0 to 0.95"),
        ({"shortest_window": 0.0}, "shortest_window 0.0: from 0.001 to 1"),
        ({"window_prior": "all"}, "window_prior 'all': one of training, none"),
    ],
)
def test_settings_out_of_range_are_named(values, message):
    with pytest.raises(ValueError, match=message):
        BaselineSettings(**values)
