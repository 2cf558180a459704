import numpy as np
import pytest

from actionspan_papers.sbp.trainings import measure


def mean_score(values, counts):
    return float((values * counts).sum() / counts.sum())


def scored(*, shift, seeds=3, videos=12, noise=0.0):
    generator = np.random.default_rng(1)
    base = generator.uniform(0.2, 0.6, (seeds, videos))
    return {
        "worse": list(base),
        "better": list(base + shift + noise * generator.normal(size=base.shape)),
    }


def test_what_is_better_on_every_video_and_seed_is_surely_so():
    found = measure(scored(shift=0.05), mean_score, videos=12, resamples=200)
    difference = found["better"].above(found["worse"], 0.95)
    # the videos differ by far more than the two ways, but they are the same videos
    assert found["better"].drawn.std() > 1
    assert difference.value == pytest.approx(5)
    assert difference.low == pytest.approx(5)
    assert difference.high == pytest.approx(5)


def test_a_difference_below_the_noise_is_open():
    found = measure(scored(shift=0.001, noise=0.1), mean_score, videos=12, resamples=200)
    difference = found["better"].above(found["worse"], 0.95)
    assert difference.low < 0 < difference.high


def test_an_estimate_is_a_percentage_with_an_interval():
    found = measure(scored(shift=0.0), mean_score, videos=12, resamples=200)["worse"]
    estimate = found.estimate(0.95)
    assert estimate.value == pytest.approx(found.seeds.mean())
    assert 0 <= estimate.low < estimate.value < estimate.high <= 100


def test_a_measure_that_some_resample_lacks_still_has_an_interval():
    def first_video(values, counts):
        return values[0] if counts[0] else np.nan

    found = measure(scored(shift=0.05), first_video, videos=12, resamples=200)
    difference = found["better"].above(found["worse"], 0.95)
    assert difference.low == pytest.approx(5)
