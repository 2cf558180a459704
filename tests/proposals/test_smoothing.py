"""Smoothed boundaries: against a slow sum, and what must not change."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actionspan.proposals.pgm import generate_candidates
from actionspan.proposals.settings import CandidateSettings
from actionspan.proposals.smoothing import smooth_boundaries


def slow(column, sigma):
    """The weighted mean over all bins at most 4 sigma (rounded up) away."""
    result = []
    for here in range(len(column)):
        total = weights = 0.0
        for there, value in enumerate(column):
            if abs(here - there) <= math.ceil(4 * sigma):
                weight = math.exp(-((there - here) ** 2) / (2 * sigma**2))
                total += weight * value
                weights += weight
        result.append(total / weights)
    return result


def video(seed, bins=30):
    return np.random.default_rng(seed).random((bins, 3))


@settings(max_examples=60)
@given(st.integers(0, 2**31), st.integers(1, 40), st.floats(0.1, 30))
def test_it_is_the_weighted_mean_of_the_neighbours(seed, bins, sigma):
    given_ = video(seed, bins)
    smoothed = smooth_boundaries(given_, sigma)
    for column in (0, 2):
        np.testing.assert_allclose(smoothed[:, column], slow(given_[:, column], sigma), rtol=1e-7)
    assert (smoothed[:, 1] == given_[:, 1]).all()
    assert smoothed.min() >= 0
    assert smoothed.max() <= 1


def test_no_smoothing_is_no_change_at_all():
    given_ = video(0).astype(np.float32)
    assert smooth_boundaries(given_, 0.0) is given_


def test_a_peak_becomes_a_gaussian_of_the_same_sum():
    given_ = np.zeros((41, 3))
    given_[20] = 1.0
    smoothed = smooth_boundaries(given_, 2.0)
    ratio = smoothed[20:29, 0] / smoothed[20, 0]
    np.testing.assert_allclose(ratio, np.exp(-(np.arange(9) ** 2) / 8), rtol=1e-6)
    assert (smoothed[29:, 0] == 0).all()  # beyond 4 sigma
    assert smoothed[:, 2].sum() == pytest.approx(1.0)


@given(st.floats(0, 1), st.floats(0.1, 10), st.sampled_from([np.float32, np.float64]))
def test_a_constant_stays_and_nothing_leaves_the_range(value, sigma, dtype):
    given_ = np.full((20, 3), value, dtype)
    smoothed = smooth_boundaries(given_, sigma)
    np.testing.assert_allclose(smoothed, given_, rtol=1e-6, atol=1e-38)
    generate_candidates(smoothed)  # refuses what is not in 0…1


def test_a_video_alone_has_the_bits_it_has_among_others():
    several = np.random.default_rng(1).random((5, 50, 3)).astype(np.float32)
    before = several.copy()
    smoothed = smooth_boundaries(several, 1.7)
    assert smoothed.dtype == np.float32
    for index in range(5):
        assert np.array_equal(smooth_boundaries(several[index], 1.7), smoothed[index])
    assert np.array_equal(several, before), "what is given stays"


@given(st.integers(0, 2**31), st.floats(0.2, 5))
def test_single_and_double_precision_have_the_same_peaks(seed, sigma):
    """Flat probabilities, in which rounding would decide what is a strict maximum."""
    single = (0.3 + 1e-7 * video(seed, 100)).astype(np.float32)
    smoothed = smooth_boundaries(single, sigma)
    double = smooth_boundaries(single.astype(np.float64), sigma)
    assert (smoothed.dtype, double.dtype) == (np.float32, np.float64)
    assert np.array_equal(smoothed, double)


def test_backwards_in_time_it_is_the_same_backwards():
    given_ = video(2)
    np.testing.assert_allclose(
        smooth_boundaries(given_[::-1], 1.3), smooth_boundaries(given_, 1.3)[::-1], rtol=2e-7
    )


def test_smoothing_joins_peaks_into_one_candidate():
    given_ = np.zeros((30, 3))
    given_[[5, 7], 0] = 0.8  # one start seen twice
    given_[25, 2] = 0.9
    few = CandidateSettings(peak_ratio=0.9)
    starts = [
        sorted({int(start * 30) for start, _ in generate_candidates(values, few)[0]})
        for values in (given_, smooth_boundaries(given_, 1.5))
    ]
    # 1 + exp(-2² / 4.5) = 1.41 at bins 5 and 7, 2·exp(-1 / 4.5) = 1.60 at bin 6 between them
    assert starts == [[0, 5, 7], [0, 6]]


@pytest.mark.parametrize(
    ("values", "sigma", "named"),
    [
        (np.zeros((4, 2)), 1.0, r"shape \(4, 2\)"),
        (np.zeros(3), 1.0, r"shape \(3,\)"),
        (np.full((4, 3), 1.5), 1.0, "not all values"),
        (np.full((4, 3), np.nan), 1.0, "not all values"),
        (np.zeros((4, 3)), -1.0, r"sigma: -1\.0"),
        (np.zeros((4, 3)), math.nan, "sigma: nan"),
    ],
)
def test_a_wrong_argument_is_named(values, sigma, named):
    with pytest.raises(ValueError, match=named):
        smooth_boundaries(values, sigma)


@pytest.mark.parametrize("sigma", [-0.1, math.nan, math.inf])
def test_the_setting_says_what_is_wrong(sigma):
    with pytest.raises(ValueError, match=r"smoothing: .* is not allowed; use a number of 0"):
        CandidateSettings(smoothing=sigma)
