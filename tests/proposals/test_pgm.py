"""PGM: which bins are boundaries, which pairs are kept in what order, and their features."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from actionspan.proposals import bsp_features, generate_candidates, temporal_iou
from actionspan.proposals.pgm import (
    PLACES,
    boundary_bins,
    candidate_bins,
    candidates_of,
    count_candidates,
)
from actionspan.proposals.settings import CandidateSettings
from proposals import oracle

PROBABILITIES = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 12), st.just(3)),
    # few values, so that plateaus and ties are common
    elements=st.sampled_from([0.0, 0.125, 0.25, 0.5, 0.75, 1.0]) | st.floats(0, 1, width=32),
)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.0, 0.2, 0.2, 0.0, 0.0, 1.0], [5]),  # a plateau is no strict peak
        ([0.3, 0.5, 0.51, 0.5, 0.3, 1.0], [2, 5]),  # 0.5 does not exceed half of 1
        ([0.4, 0.1, 0.0, 0.1, 1.0], [4]),  # the first bin has no peak: it has one neighbour
    ],
)
def test_boundary_bins(values, expected):
    assert boundary_bins(values, 0.5).nonzero()[0].tolist() == expected


@given(
    PROBABILITIES,
    st.sampled_from([0.0, 0.3, 0.5, 1.0]),
    st.integers(1, 30),
    st.sampled_from([(1, 0), (3, 0), (1, 4), (2, 2)]),
)
def test_equal_to_the_slow_one(probabilities, ratio, limit, lengths):
    shortest, longest = lengths
    setting = CandidateSettings(
        peak_ratio=ratio, candidates=limit, shortest=shortest, longest=longest
    )
    segments, scores = generate_candidates(probabilities, setting)
    slow = oracle.candidates(probabilities.tolist(), ratio, limit, shortest, longest)
    bins = np.round(segments * len(probabilities) - 0.5).astype(int)
    assert [
        (*pair, *score) for pair, score in zip(bins.tolist(), scores.tolist(), strict=True)
    ] == slow
    assert count_candidates(probabilities, setting) == len(slow)


def test_features_are_those_of_the_actionness():
    probabilities = np.random.default_rng(3).random((30, 3), dtype=np.float32)
    found = candidates_of(probabilities, CandidateSettings(candidates=20))
    segments, scores = generate_candidates(probabilities, CandidateSettings(candidates=20))
    np.testing.assert_array_equal(found.features, bsp_features(probabilities[:, 1], segments))
    np.testing.assert_array_equal(found.segments, segments.astype(np.float32))
    np.testing.assert_array_equal(found.scores, scores.astype(np.float32))


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        *((np.array([[0.5] * 3, [0.5, 0.5, bad]]), "0…1") for bad in (np.nan, np.inf, -0.1, 1.1)),
        *((np.zeros(shape), "shape") for shape in ((5,), (5, 2), (0, 3), (1, 5, 3))),
    ],
)
def test_refuses_what_is_no_probability_and_other_shapes(probabilities, message):
    with pytest.raises(ValueError, match=message):
        generate_candidates(probabilities)


def test_a_flat_video_has_one_candidate_and_one_of_one_bin_has_none():
    starts, ends = candidate_bins(np.zeros((10, 3), np.float32), 0.5)
    assert starts.nonzero()[0].tolist() == [0]
    assert ends.nonzero()[0].tolist() == [9]
    segments, scores = generate_candidates(np.zeros((10, 3), np.float32))
    assert segments.tolist() == [[0.05, 0.95]]
    assert scores.tolist() == [[0.0, 0.0]]
    found = candidates_of(np.ones((1, 3), np.float32), CandidateSettings())
    assert (found.segments.shape, found.features.shape) == ((0, 2), (0, 32))
    assert found.features.dtype == found.segments.dtype == found.scores.dtype == np.float32


@pytest.mark.full
@pytest.mark.parametrize("reference", [True, False])
def test_upper_bound_of_bin_centres_on_activitynet(shared_data, reference):
    """All pairs of 100 bin centres against the real validation annotations.

    The reference implementation maps bins to the length that the features cover, we to the one
    duration that we keep everywhere: a little higher.
    """
    folder = shared_data / "activitynet"
    videos = json.loads((folder / "anet_anno_action.json").read_text())
    rows = [row.split(",") for row in (folder / "video_info_new.csv").read_text().splitlines()]
    validation = [row[0] for row in rows if row[5] == "validation" and row[0] in videos]
    truth = []
    for video in map(videos.get, validation):
        covered = video["feature_frame"] / video["duration_frame"] if reference else 1
        duration = covered * video["duration_second"]
        truth += [np.array(item["segment"]) / duration for item in video["annotations"]]
    segments, _ = generate_candidates(np.ones((100, 3)), CandidateSettings(candidates=4950))
    assert (len(validation), len(truth), len(segments)) == (4728, 7293, 4950)
    parts = np.array_split(np.array(truth), 30)
    best = np.concatenate([temporal_iou(part, segments).max(axis=1) for part in parts])
    recall = [(best >= threshold).mean() for threshold in np.linspace(0.5, 0.95, 10)]
    expected = [0.9257, 0.9875, 0.7254] if reference else [0.9269, 0.9878, 0.7299]
    found = [np.mean(recall), recall[0], recall[-1]]
    np.testing.assert_allclose(found, expected, atol=5e-5, rtol=0)


@given(
    hnp.arrays(np.float64, st.integers(1, 20), elements=st.floats(0, 1)),
    st.lists(
        st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted).filter(lambda s: s[0] < s[1]),
        min_size=1,
        max_size=3,
    ),
)
def test_features_equal_the_slow_ones(actionness, segments):
    slow = [oracle.bsp(actionness.tolist(), segment) for segment in segments]
    np.testing.assert_allclose(bsp_features(actionness, segments), slow, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("bins", "count"), [(1, 3), (2, 20), (100, 1001)])
def test_equal_to_the_bit_to_each_finer_point_by_itself(bins, count):
    rng = np.random.default_rng(bins)
    actionness, segments = rng.random(bins), np.sort(rng.random((count, 2)), axis=1)
    segments[:3] = [[0, 1], [0, 0.5 / bins], [1 - 0.5 / bins, 1]]
    padded = np.concatenate([[0.0], actionness, [0.0, 0.0]])
    start, end = (segments * bins + 0.5)[..., None].swapaxes(0, 1)
    total = np.zeros((count, 32))
    for places in PLACES:
        place = np.clip(start + (end - start) * places, 0, bins + 1)
        before = place.astype(int)
        total += (place - before) * np.diff(padded)[before] + padded[before]
    assert (bsp_features(actionness, segments) == (total / 4).astype(np.float32)).all()
