"""The intervals against resampling done the long way, exact cases, and how often they hold 0."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan_papers.estimates import (
    draw_videos,
    interval,
    percentile_interval,
    resampled_scores,
    seed_scores,
    seeds_half_width,
)

NAN = float("nan")
Z = 1.959963984540054


def problem(seeds=3, videos=7, measures=2, seed=0):
    generator = np.random.default_rng(seed)
    values = generator.uniform(0, 100, (seeds, videos, measures))
    return values, generator.integers(1, 6, videos)


def literal_mean(values, instances, videos):
    """Return the mean of one measure of one seed over drawn videos, by a loop over plain lists."""
    total = of = 0
    for video in videos:
        if not np.isnan(values[video]):
            total += instances[video] * values[video]
            of += instances[video]
    return total / of if of else NAN


def test_each_resample_is_the_mean_of_what_was_drawn():
    values, instances = problem()
    values[1, 2, 0] = values[0, 5, 1] = NAN
    expected = [[literal_mean(one, instances, range(7)) for one in seed.T] for seed in values]
    np.testing.assert_allclose(seed_scores(values, instances), expected, rtol=0, atol=1e-10)
    drawn = draw_videos(7, 40, seed=3)
    assert (drawn == draw_videos(7, 40, seed=3)).all()
    assert (drawn != draw_videos(7, 40, seed=2)).any()
    scores = resampled_scores(values, instances, drawn)
    for resample, counts in enumerate(drawn):
        videos = [place for place, count in enumerate(counts) for _ in range(count)]
        assert len(videos) == 7
        for measure in range(2):
            means = [literal_mean(seed[:, measure], instances, videos) for seed in values]
            assert scores[resample, measure] == pytest.approx(sum(means) / 3, abs=1e-10)


def test_a_seed_without_any_value_leaves_the_mean_open():
    values, instances = problem()
    values[1, :, 0] = NAN
    scores = seed_scores(values, instances)
    assert np.isnan(scores).tolist() == [[False, False], [True, False], [False, False]]
    drawn = resampled_scores(values, instances, np.ones((2, 7), dtype=int))
    assert np.isnan(drawn).tolist() == [[True, False]] * 2


@given(value=st.floats(0, 100), instances=st.integers(1, 50), seed=st.integers(0, 99))
def test_one_video_and_one_seed_have_no_interval(value, instances, seed):
    values = np.full((1, 1, 1), value)
    counts = np.array([instances])
    scores = resampled_scores(values, counts, draw_videos(1, 20, seed))[:, 0]
    mean = float(seed_scores(values, counts)[0, 0])
    assert mean == pytest.approx(value)
    assert interval(mean, scores, 1, 0.0, 0.95) == pytest.approx((mean, mean), abs=1e-9)


@given(seed=st.integers(0, 999))
def test_equal_methods_differ_by_exactly_nothing_and_one_that_is_better_by_one_by_one(seed):
    values, instances = problem(seeds=1, seed=seed)
    videos = draw_videos(7, 30, seed)
    one, other, better = (resampled_scores(values + more, instances, videos) for more in (0, 0, 1))
    assert interval(0.0, (one - other)[:, 0], 7, 0.0, 0.95) == (0, 0)
    np.testing.assert_allclose(better - one, 1, atol=1e-10)


def test_the_spread_of_resampled_means_is_that_of_theory():
    """The variance of a bootstrap mean of n values is their variance over n."""
    values = np.random.default_rng(4).normal(size=12)
    drawn = draw_videos(12, 200_000, 1)
    means = resampled_scores(values[None, :, None], np.ones(12, dtype=int), drawn)
    assert means.var() == pytest.approx(values.var() / 12, rel=0.02)
    assert means.mean() == pytest.approx(values.mean(), abs=0.01)


def test_the_percentiles_leave_out_what_is_not_known():
    values = np.array([*range(101), NAN, NAN], dtype=float)
    assert percentile_interval(values, 0.9) == pytest.approx((5, 95))
    assert np.isnan(percentile_interval(np.array([NAN]), 0.9)).all()


@pytest.mark.parametrize(
    ("groups", "half"),
    [
        # printed quantiles of Student's t with 1, 2 and 4 degrees of freedom
        ([[1, 3]], 12.7062047 * math.sqrt(2 / 2)),
        ([[1, 2, 6]], 4.3026527 * math.sqrt(7 / 3)),
        ([range(5)], 2.7764451 * math.sqrt(2.5 / 5)),
        # two of equal spread and size have the pooled degrees of freedom, here 4
        ([[1, 2, 6], [9, 8, 4]], 2.7764451 * math.sqrt(2 * 7 / 3)),
        # one seed and equal seeds add nothing
        *(([[1, 2, 6], [1] * size], 4.3026527 * math.sqrt(7 / 3)) for size in (5, 1)),
        *(([], 0), ([[3]], 0), ([[3], [4]], 0), ([[2, 2], [1, 1, 1]], 0)),
    ],
)
def test_the_half_width_of_seeds(groups, half):
    found = seeds_half_width([np.array(of, dtype=float) for of in groups], 0.95)
    assert found == pytest.approx(half) if half else found == 0


def test_an_interval_joins_its_parts_by_their_squares():
    drawn = 10 + np.linspace(-3, 5, 1001)
    low, high = percentile_interval(drawn, 0.95)
    stretch = math.sqrt(5 / 4) * 2.7764451 / Z  # 5 videos, 4 degrees of freedom
    found = interval(10.0, drawn, 5, 2.0, 0.95)
    assert found[0] == pytest.approx(10 - math.hypot((10 - low) * stretch, 2))
    assert found[1] == pytest.approx(10 + math.hypot((high - 10) * stretch, 2))


def test_many_videos_have_the_plain_bootstrap_interval_and_equal_resamples_that_of_seeds():
    drawn = np.random.default_rng(1).normal(5, 1, 2000)
    found = interval(5.0, drawn, 10**7, 0.0, 0.95)
    assert found == pytest.approx(percentile_interval(drawn, 0.95), abs=1e-5)
    assert interval(1.0, np.ones(50), 8, 0.25, 0.95) == (0.75, 1.25)


@pytest.mark.parametrize("seeds", [2, 3, 5, 10])
@pytest.mark.parametrize(
    ("training", "method", "chance"),
    [(1, 0, 0), (1, 2, 0), (0.5, 3, 3), (0, 0, 5), (0.1, 5, 1)],
    ids=["seeds alone", "seeds and methods", "all", "chance", "methods"],
)
def test_equal_methods_are_told_apart_in_five_of_a_hundred_cases(seeds, training, method, chance):
    """Two methods of equal expectation; 20 videos, some hard for both.

    Trainings deviate in all videos alike, a method in each video in all trainings alike, and
    each training in each video by chance.
    """
    generator = np.random.default_rng(7)
    trials, videos = 250, 20
    instances = np.ones(videos, dtype=int)
    drawn = draw_videos(videos, 200, 1)
    hard = generator.normal(0, 10, (trials, 1, 1, videos, 1))
    values = hard + generator.normal(0, method, (trials, 2, 1, videos, 1))
    values = values + generator.normal(0, training, (trials, 2, seeds, 1, 1))
    values = values + generator.normal(0, chance, (trials, 2, seeds, videos, 1))
    outside = 0
    for one, other in values:
        groups = [seed_scores(of, instances)[:, 0] for of in (one, other)]
        resampled = [resampled_scores(of, instances, drawn)[:, 0] for of in (one, other)]
        difference, half = groups[0].mean() - groups[1].mean(), seeds_half_width(groups, 0.95)
        low, high = interval(difference, resampled[0] - resampled[1], videos, half, 0.95)
        outside += not low <= 0 <= high
    assert outside <= 0.07 * trials
