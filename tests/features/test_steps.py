"""Rescaling against closed forms and against numpy's interpolation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actionspan.features.steps import rescale


def snippet_times(rows: int, step: float) -> np.ndarray:
    return (np.arange(rows) + 0.5) * step


def oracle(features: np.ndarray, times: np.ndarray, duration: float, steps: int) -> np.ndarray:
    out = np.empty((steps, features.shape[1]))
    for bin_ in range(steps):
        points = [(bin_ + part) * duration / steps for part in (0, 0.5, 1)]
        for column, values in enumerate(features.T):
            out[bin_, column] = np.mean(np.interp(points, times, values))
    return out


@pytest.mark.parametrize("method", ["mean", "bins", "linear"])
def test_a_constant_stays_constant(method):
    features = np.full((7, 3), 2.5, np.float32)
    out = rescale(features, snippet_times(7, 1.3), 9.1, 100, method)
    np.testing.assert_allclose(out, 2.5, rtol=1e-6)


@pytest.mark.parametrize("method", ["mean", "bins", "linear"])
def test_a_ramp_keeps_its_value_at_bin_centres_and_is_clamped_at_the_ends(method):
    times = snippet_times(20, 0.64)
    duration = 20 * 0.64
    out = rescale(times[:, None].astype(np.float32), times, duration, 100, method)[:, 0]
    centres = (np.arange(100) + 0.5) * duration / 100
    inside = (centres > times[0] + 0.1) & (centres < times[-1] - 0.1)
    np.testing.assert_allclose(out[inside], centres[inside], rtol=1e-5)
    np.testing.assert_allclose(out[:2], times[0], rtol=1e-5)  # clamped to the first centre
    np.testing.assert_allclose(out[-2:], times[-1], rtol=1e-5)


def test_a_bin_is_the_mean_of_three_points_and_not_a_point():
    # A triangle with its peak in the middle of the only bin: (0 + 1 + 0) / 3.
    features = np.array([[0.0], [1.0], [0.0]], np.float32)
    times = np.array([0.0, 1.0, 2.0])
    assert rescale(features, times, 2.0, 1, "bins")[0, 0] == pytest.approx(1 / 3)
    assert rescale(features, times, 2.0, 1, "linear")[0, 0] == 1.0


@pytest.mark.parametrize("method", ["mean", "bins", "linear"])
def test_one_snippet_is_repeated(method):
    features = np.array([[1.0, -2.0]], np.float32)
    out = rescale(features, np.array([0.3]), 0.6, 100, method)
    np.testing.assert_array_equal(out, np.repeat(features, 100, axis=0))


@pytest.mark.parametrize("method", ["mean", "bins", "linear"])
def test_rows_already_at_the_bin_centres_are_not_smoothed(method, rng):
    features = rng.normal(size=(100, 4)).astype(np.float32)
    out = rescale(features, snippet_times(100, 0.37), 37.0, 100, method)
    np.testing.assert_array_equal(out, features)


def test_a_curve_is_rescaled_as_a_column(rng):
    curve, times = rng.normal(size=31).astype(np.float32), snippet_times(31, 0.5)
    whole = rescale(curve[:, None], times, 15.5, 100, "bins")[:, 0]
    np.testing.assert_array_equal(rescale(curve, times, 15.5, 100, "bins"), whole)


def without_gaps(random, rows):
    """Increasing times in 0 … 1; no distance is three times another."""
    times = random.uniform(1, 2.9, rows).cumsum()
    return times / (times[-1] + random.random())


@settings(max_examples=60)
@given(
    rows=st.integers(1, 300),
    duration=st.floats(0.1, 5000),
    spread=st.floats(0.2, 1.0),
    seed=st.integers(0, 99),
)
def test_bins_agree_with_numpy_for_any_length(rows, duration, spread, seed):
    random = np.random.default_rng(seed)
    features = random.normal(size=(rows, 2)).astype(np.float32)
    times = without_gaps(random, rows) * duration * spread
    out = rescale(features, times, duration, 20, "bins")
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, oracle(features, times, duration, 20), rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("rows", "times", "duration", "method", "message"),
    [
        (2, [0.0], 1.0, "bins", "2 rows of features and 1 times"),
        (0, [], 1.0, "bins", "0 rows"),
        (2, [1.0, 1.0], 2.0, "bins", "do not increase"),
        (1, [1.0], 0.0, "bins", "duration is 0.0"),
        (1, [1.0], 2.0, "cubic", "method is 'cubic': mean, bins, linear or nearest"),
    ],
)
def test_wrong_input_is_named(rows, times, duration, method, message):
    with pytest.raises(ValueError, match=message):
        rescale(np.zeros((rows, 2), np.float32), np.array(times), duration, 100, method)


@settings(max_examples=50)
@given(st.integers(1, 30), st.integers(1, 40), st.floats(0.2, 1.0))
def test_the_mean_is_the_integral_of_the_interpolated_line(rows, steps, coverage):
    random = np.random.default_rng([rows, steps])
    times = without_gaps(random, rows) * coverage
    features = random.normal(size=(rows, 2)).astype(np.float32)
    found = rescale(features, times, 1.0, steps, "mean")
    fine = 20_000  # points a bin, at their cells' middles
    points = (np.arange(steps * fine) + 0.5) / (steps * fine)
    for column in range(2):
        line = np.interp(points, times, features[:, column]).reshape(steps, fine).mean(axis=1)
        np.testing.assert_allclose(found[:, column], line, atol=2e-5)


def test_the_nearest_snippet_of_each_step():
    features = np.arange(5, dtype=np.float32)
    times = np.array([0.4, 1.4, 2.4, 3.4, 4.4])  # a little before the middles, as at odd lengths
    assert rescale(features, times, 5.0, 5, "nearest").tolist() == [0, 1, 2, 3, 4]
    assert rescale(features, times, 4.6, 5, "nearest").tolist() == [0, 1, 2, 3, 4]
    assert rescale(features, times, 5.0, 2, "nearest").tolist() == [1, 3]
    assert rescale(features[:1], times[:1], 5.0, 3, "nearest").tolist() == [0, 0, 0]
    # half-way between two, the earlier one
    assert rescale(features[:2], np.array([1.0, 3.0]), 4.0, 1, "nearest").tolist() == [0]


GAP_TIMES = np.array([0.5, 1.5, 2.5, 7.5, 8.5, 9.5])  # a picture is held from 3 to 7 s


@pytest.mark.parametrize("method", ["mean", "bins", "linear", "nearest"])
def test_a_picture_that_is_held_keeps_its_features_and_is_at_rest(method):
    values = np.array([1, 2, 3, 10, 11, 12], np.float32)
    held = rescale(values, GAP_TIMES, 10.0, 10, method)
    np.testing.assert_allclose(held[3:7], 3)
    np.testing.assert_allclose(held[[0, 1, 8, 9]], [1, 2, 11, 12], atol=0.2)
    still = rescale(values, GAP_TIMES, 10.0, 10, method, motion=True)
    assert (still[4:6] == 0).all()
    np.testing.assert_allclose(still[[0, 1, 8, 9]], held[[0, 1, 8, 9]])


def test_a_part_that_is_slow_altogether_has_no_gaps():
    times = np.array([1.0, 2, 3, 7, 11, 15])
    values = np.arange(6, dtype=np.float32)
    curve = rescale(values, times, 16.0, 16, "linear", motion=True)
    np.testing.assert_allclose(curve, np.interp(np.arange(16) + 0.5, times, values), atol=1e-6)


def test_many_gaps_are_each_held():
    steps = np.tile([1.0, 1.0, 5.0], 6)
    times = np.cumsum(steps)
    values = np.arange(1, len(times) + 1, dtype=np.float32)
    still = rescale(values, times, times[-1] + 1, 2000, "linear", motion=True)
    middles = (np.arange(2000) + 0.5) * (times[-1] + 1) / 2000
    for before, after in zip(times[1:-1:3], times[2::3], strict=True):
        inside = (middles > before + 0.6) & (middles < after - 0.6)
        assert inside.sum() > 50
        assert (still[inside] == 0).all()


@pytest.mark.parametrize("channels", [127, 129, 300])
def test_a_feature_is_rescaled_alike_alone_and_among_many(channels, rng):
    features = rng.normal(size=(50, channels)).astype(np.float32)
    times = np.sort(rng.uniform(0, 30, 50))
    together = rescale(features, times, 31.0, 20, "mean")
    for channel in (0, channels - 1):
        pair = features[:, [channel, channel]]
        np.testing.assert_array_equal(
            together[:, channel], rescale(pair, times, 31.0, 20, "mean")[:, 0]
        )
