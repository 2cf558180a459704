"""The bootstrap over videos and seeds against resampling done the long way, and its exact cases."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.evaluation.resampling import (
    draw_seeds,
    draw_videos,
    mean_scores,
    percentile_interval,
    resampled_means,
    resampled_scores,
)

NAN = float("nan")


def problem(seeds=3, videos=7, measures=2, seed=0):
    generator = np.random.default_rng(seed)
    values = generator.uniform(0, 100, (seeds, videos, measures))
    return values, generator.integers(1, 6, videos)


def literal_mean(values, instances, videos, seeds):
    """Return the mean of one measure over drawn seeds and videos, by loops over plain lists."""
    means = []
    for seed in seeds:
        total = of = 0
        for video in videos:
            if not np.isnan(values[seed][video]):
                total += instances[video] * values[seed][video]
                of += instances[video]
        means.append(total / of if of else NAN)
    return sum(means) / len(means)


def listed(counts):
    return [place for place, count in enumerate(counts) for _ in range(count)]


def test_each_resample_is_the_mean_of_what_was_drawn():
    values, instances = problem()
    values[1, 2, 0] = values[0, 5, 1] = NAN
    videos, seeds = draw_videos(7, 40, seed=3), draw_seeds("mtn", 3, 40, seed=3)
    scores = resampled_scores(values, instances, videos, seeds)
    for resample in range(40):
        drawn = listed(videos[resample]), listed(seeds[resample])
        assert [len(one) for one in drawn] == [7, 3]
        for measure in range(2):
            expected = literal_mean(values[:, :, measure], instances, *drawn)
            assert scores[resample, measure] == pytest.approx(expected, abs=1e-10)


def test_the_mean_is_that_over_all_videos_and_seeds():
    values, instances = problem()
    for measure, mean in enumerate(mean_scores(values, instances)):
        expected = literal_mean(values[:, :, measure], instances, range(7), range(3))
        assert mean == pytest.approx(expected, abs=1e-10)


def test_a_seed_without_any_value_leaves_the_mean_open():
    values, instances = problem()
    values[1, :, 0] = NAN
    first, second = mean_scores(values, instances)
    assert np.isnan(first)
    assert not np.isnan(second)
    seeds = np.array([[2, 0, 1], [2, 1, 0]])
    scores = resampled_scores(values, instances, np.ones((2, 7), dtype=int), seeds)
    assert np.isnan(scores[:, 0]).tolist() == [False, True]


@given(value=st.floats(0, 100), instances=st.integers(1, 50), seed=st.integers(0, 99))
def test_one_video_and_one_seed_have_no_interval(value, instances, seed):
    values = np.full((1, 1, 1), value)
    drawn = draw_videos(1, 20, seed), draw_seeds("mtn", 1, 20, seed)
    scores = resampled_scores(values, np.array([instances]), *drawn)
    mean = mean_scores(values, np.array([instances]))[0]
    assert mean == pytest.approx(value)
    assert percentile_interval(scores[:, 0], 0.95) == (mean, mean)


@given(seed=st.integers(0, 999))
def test_equal_methods_of_one_seed_differ_by_exactly_nothing(seed):
    values, instances = problem(seeds=1, seed=seed)
    videos = draw_videos(7, 30, seed)
    one, other = (
        resampled_scores(values, instances, videos, draw_seeds(name, 1, 30, seed))
        for name in ("mtn", "origin")
    )
    assert (one - other == 0).all()


def test_a_method_that_is_better_by_one_everywhere_is_so_in_each_resample():
    values, instances = problem(seeds=1)
    videos = draw_videos(7, 50, 1)
    seeds = draw_seeds("mtn", 1, 50, 1)
    better = resampled_scores(values + 1, instances, videos, seeds)
    worse = resampled_scores(values, instances, videos, seeds)
    np.testing.assert_allclose(better - worse, 1, atol=1e-10)


def test_draws_repeat_with_their_seed_and_methods_draw_apart():
    assert (draw_videos(9, 20, 1) == draw_videos(9, 20, 1)).all()
    assert (draw_videos(9, 20, 1) != draw_videos(9, 20, 2)).any()
    assert (draw_seeds("mtn", 3, 20, 1) == draw_seeds("mtn", 3, 20, 1)).all()
    assert (draw_seeds("mtn", 3, 20, 1) != draw_seeds("se", 3, 20, 1)).any()


def test_the_spread_of_resampled_means_is_that_of_theory():
    """The variance of a bootstrap mean of n values is their variance over n."""
    values = np.random.default_rng(4).normal(size=12)
    drawn = draw_seeds("mtn", 12, 200_000, 1)
    means = resampled_means(values, drawn)
    assert means.var() == pytest.approx(values.var() / 12, rel=0.02)
    assert means.mean() == pytest.approx(values.mean(), abs=0.01)
    as_videos = resampled_scores(
        values[None, :, None], np.ones(12, dtype=int), draw_videos(12, 200_000, 1), drawn[:, :1] + 1
    )
    assert as_videos.var() == pytest.approx(values.var() / 12, rel=0.02)


def test_the_interval_leaves_out_what_is_not_known():
    values = np.array([*range(101), NAN, NAN], dtype=float)
    assert percentile_interval(values, 0.9) == pytest.approx((5, 95))
    assert np.isnan(percentile_interval(np.array([NAN]), 0.9)).all()
