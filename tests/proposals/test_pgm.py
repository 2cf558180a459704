"""PGM: which bins are boundaries, which pairs are kept, in what order."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from actionspan.proposals import generate_candidates, temporal_iou
from actionspan.proposals.pgm import (
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
        ([0.0, 0.2, 0.1, 0.2, 0.0, 1.0], [1, 3, 5]),
        ([0.0, 0.2, 0.2, 0.0, 0.0, 1.0], [5]),  # a plateau is no strict peak
        ([0.3, 0.5, 0.51, 0.5, 0.3, 1.0], [2, 5]),  # 0.5 does not exceed half of 1
        ([0.9, 0.6, 0.55, 0.6, 0.9, 1.0], [0, 1, 2, 3, 4, 5]),
        ([0.0, 0.0, 0.0], []),
        ([0.4, 0.1, 0.0, 0.1, 1.0], [4]),  # the first bin has no peak: it has one neighbour
    ],
)
def test_boundary_bins(values, expected):
    assert boundary_bins(values, 0.5).nonzero()[0].tolist() == expected


def test_the_first_start_and_the_last_end_are_always_there():
    probabilities = np.zeros((10, 3), np.float32)
    starts, ends = candidate_bins(probabilities, 0.5)
    assert starts.nonzero()[0].tolist() == [0]
    assert ends.nonzero()[0].tolist() == [9]
    segments, scores = generate_candidates(probabilities)
    assert segments.tolist() == [[0.05, 0.95]]
    assert scores.tolist() == [[0.0, 0.0]]


def test_positions_are_bin_centres_and_pairs_run_forward():
    probabilities = np.zeros((100, 3), np.float32)
    probabilities[[20, 60], 0] = [0.5, 0.75]
    probabilities[[40, 80], 2] = [1.0, 0.625]
    segments, scores = generate_candidates(probabilities)
    assert [tuple(pair) for pair in segments[:3].tolist()] == [
        (0.205, 0.405),  # 0.5
        (0.605, 0.805),  # 0.46875
        (0.205, 0.805),  # 0.3125
    ]
    assert scores[0].tolist() == [0.5, 1.0]
    assert (segments[:, 0] < segments[:, 1]).all()
    assert len(segments) == 3 + 2 + 3  # and (0, 40), (0, 80); each start with the last bin


def test_ties_stand_in_order_of_start_then_end():
    segments, _ = generate_candidates(np.full((5, 3), 0.5, np.float32))
    bins = np.round(segments * 5 - 0.5).astype(int)
    assert bins.tolist() == [[i, j] for i in range(5) for j in range(i + 1, 5)]


def test_products_of_different_factors_that_are_equal_are_ties():
    probabilities = np.zeros((6, 3), np.float32)
    probabilities[[0, 2], 0] = [0.25, 0.5]
    probabilities[[3, 5], 2] = [0.5, 0.25]
    segments, scores = generate_candidates(probabilities, CandidateSettings(peak_ratio=0.3))
    bins = np.round(segments * 6 - 0.5).astype(int).tolist()
    assert scores.prod(axis=1).tolist() == [0.25, 0.125, 0.125, 0.0625]
    assert bins == [[2, 3], [0, 3], [2, 5], [0, 5]]


def test_keeps_the_best():
    rng = np.random.default_rng(0)
    probabilities = rng.random((100, 3), dtype=np.float32)
    everything, scores = generate_candidates(probabilities, CandidateSettings(candidates=10**6))
    best, best_scores = generate_candidates(probabilities)
    assert len(everything) > len(best) == 1000
    assert (best == everything[:1000]).all()
    assert best_scores.prod(axis=1).min() >= scores[1000:].prod(axis=1).max()


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


def test_counts_of_many_videos():
    probabilities = np.random.default_rng(1).random((20, 30, 3), dtype=np.float32)
    setting = CandidateSettings(candidates=120)
    counts = [len(generate_candidates(video, setting)[0]) for video in probabilities]
    assert [count_candidates(video, setting) for video in probabilities] == counts
    assert min(counts) < 120 == max(counts)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -0.1, 1.1])
def test_refuses_what_is_no_probability(bad):
    probabilities = np.full((5, 3), 0.5)
    probabilities[2, 2] = bad
    with pytest.raises(ValueError, match="0…1"):
        generate_candidates(probabilities)


@pytest.mark.parametrize("shape", [(5,), (5, 2), (0, 3), (1, 5, 3)])
def test_refuses_other_shapes(shape):
    with pytest.raises(ValueError, match="shape"):
        generate_candidates(np.zeros(shape))


def test_a_video_of_one_bin_has_no_candidates():
    found = candidates_of(np.ones((1, 3), np.float32), CandidateSettings())
    assert found.segments.shape == (0, 2)
    assert found.features.shape == (0, 32)
    assert found.features.dtype == found.segments.dtype == found.scores.dtype == np.float32


def test_features_are_those_of_the_actionness():
    probabilities = np.random.default_rng(3).random((30, 3), dtype=np.float32)
    found = candidates_of(probabilities, CandidateSettings(candidates=20))
    segments, scores = generate_candidates(probabilities, CandidateSettings(candidates=20))
    slow = [oracle.bsp(probabilities[:, 1].tolist(), segment) for segment in segments.tolist()]
    np.testing.assert_allclose(found.features, slow, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found.segments, segments.astype(np.float32))
    np.testing.assert_array_equal(found.scores, scores.astype(np.float32))


def test_perfect_probabilities_give_the_truth_first():
    truth = np.array([[10, 30], [45, 52], [60, 95]])
    probabilities = np.zeros((100, 3), np.float32)
    probabilities[truth[:, 0], 0] = 1
    probabilities[truth[:, 1], 2] = 1
    segments, scores = generate_candidates(probabilities)
    perfect = scores.prod(axis=1) == 1
    overlap = temporal_iou((truth + 0.5) / 100, segments[perfect])
    assert (overlap.max(axis=1) == 1).all()
    assert perfect.sum() == 6  # every start with every later end


@pytest.mark.parametrize(
    ("duration", "expected"),
    [
        # The length the features cover, by which the reference implementation maps bins to time.
        (
            lambda video: (
                video["feature_frame"] / video["duration_frame"] * video["duration_second"]
            ),
            [0.9257, 0.9875, 0.7254],
        ),
        # The one duration we keep everywhere: a little higher.
        (lambda video: video["duration_second"], [0.9269, 0.9878, 0.7299]),
    ],
    ids=["reference", "ours"],
)
def test_upper_bound_of_bin_centres_on_activitynet(shared_data, duration, expected):
    """All pairs of 100 bin centres against the real validation annotations."""
    folder = shared_data / "activitynet"
    videos = json.loads((folder / "anet_anno_action.json").read_text())
    rows = [row.split(",") for row in (folder / "video_info_new.csv").read_text().splitlines()]
    validation = [row[0] for row in rows if row[5] == "validation" and row[0] in videos]
    truth = np.array(
        [
            np.array(item["segment"]) / duration(videos[name])
            for name in validation
            for item in videos[name]["annotations"]
        ]
    )
    segments, _ = generate_candidates(np.ones((100, 3)), CandidateSettings(candidates=4950))
    assert len(segments) == 4950
    best = np.concatenate(
        [temporal_iou(part, segments).max(axis=1) for part in np.array_split(truth, 30)]
    )
    recall = [(best >= threshold).mean() for threshold in np.linspace(0.5, 0.95, 10)]
    assert (len(validation), len(truth)) == (4728, 7293)
    found = [np.mean(recall), recall[0], recall[-1]]
    np.testing.assert_allclose(found, expected, atol=5e-5, rtol=0)
