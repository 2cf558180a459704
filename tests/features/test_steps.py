"""Steps of a sequence, against closed forms and numpy's interpolation; its windows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.features.steps import cut_windows, merge_windows, rescale, window_starts
from tiers import examples

METHODS = ("mean", "bins", "linear")
OF_EVERY_METHOD = pytest.mark.parametrize("method", METHODS)


def snippet_times(rows: int, step: float) -> np.ndarray:
    return (np.arange(rows) + 0.5) * step


def oracle(features: np.ndarray, times: np.ndarray, duration: float, steps: int) -> np.ndarray:
    out = np.empty((steps, features.shape[1]))
    for bin_ in range(steps):
        points = [(bin_ + part) * duration / steps for part in (0, 0.5, 1)]
        for column, values in enumerate(features.T):
            out[bin_, column] = np.mean(np.interp(points, times, values))
    return out


@OF_EVERY_METHOD
def test_what_is_constant_even_or_alone_keeps_its_values(method, rng):
    constant = rescale(np.full((7, 3), 2.5, np.float32), snippet_times(7, 1.3), 9.1, 100, method)
    np.testing.assert_allclose(constant, 2.5, rtol=1e-6)
    one = np.array([[1.0, -2.0]], np.float32)
    repeated = rescale(one, np.array([0.3]), 0.6, 100, method)
    np.testing.assert_array_equal(repeated, np.repeat(one, 100, axis=0))
    # rows already at the bins' centres are not smoothed
    rows = rng.normal(size=(100, 4)).astype(np.float32)
    out = rescale(rows, snippet_times(100, 0.37), 37.0, 100, method)
    np.testing.assert_array_equal(out, rows)


@OF_EVERY_METHOD
def test_a_ramp_keeps_its_value_at_bin_centres_and_is_clamped_at_the_ends(method):
    times, duration = snippet_times(20, 0.64), 20 * 0.64
    out = rescale(times[:, None].astype(np.float32), times, duration, 100, method)[:, 0]
    centres = snippet_times(100, duration / 100)
    inside = (centres > times[0] + 0.1) & (centres < times[-1] - 0.1)
    np.testing.assert_allclose(out[inside], centres[inside], rtol=1e-5)
    np.testing.assert_allclose(out[:2], times[0], rtol=1e-5)  # clamped to the first centre
    np.testing.assert_allclose(out[-2:], times[-1], rtol=1e-5)


def test_a_bin_is_the_mean_of_three_points_and_not_a_point():
    # A triangle with its peak in the middle of the only bin: (0 + 1 + 0) / 3.
    features, times = np.array([[0.0], [1.0], [0.0]], np.float32), np.array([0.0, 1.0, 2.0])
    assert rescale(features, times, 2.0, 1, "bins")[0, 0] == pytest.approx(1 / 3)
    assert rescale(features, times, 2.0, 1, "linear")[0, 0] == 1.0


def test_a_curve_is_rescaled_as_a_column(rng):
    curve, times = rng.normal(size=31).astype(np.float32), snippet_times(31, 0.5)
    whole = rescale(curve[:, None], times, 15.5, 100, "bins")[:, 0]
    np.testing.assert_array_equal(rescale(curve, times, 15.5, 100, "bins"), whole)


def without_gaps(random, rows):
    """Increasing times in 0 … 1; no distance is three times another."""
    times = random.uniform(1, 2.9, rows).cumsum()
    return times / (times[-1] + random.random())


@examples(60)
@given(st.integers(1, 300), st.floats(0.1, 5000), st.floats(0.2, 1.0), st.integers(0, 99))
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


@examples(50)
@given(st.integers(1, 30), st.integers(1, 40), st.floats(0.2, 1.0))
def test_the_mean_is_the_integral_of_the_interpolated_line(rows, steps, coverage):
    random = np.random.default_rng([rows, steps])
    times = without_gaps(random, rows) * coverage
    features = random.normal(size=(rows, 2)).astype(np.float32)
    found = rescale(features, times, 1.0, steps, "mean")
    fine = 20_000  # points a bin, at their cells' middles
    points = snippet_times(steps * fine, 1 / (steps * fine))
    for column in range(2):
        line = np.interp(points, times, features[:, column]).reshape(steps, fine).mean(axis=1)
        np.testing.assert_allclose(found[:, column], line, atol=2e-5)


@pytest.mark.parametrize(
    ("times", "duration", "steps", "expected"),
    [
        # a little before the middles, as at odd lengths
        ([0.4, 1.4, 2.4, 3.4, 4.4], 5.0, 5, [0, 1, 2, 3, 4]),
        ([0.4, 1.4, 2.4, 3.4, 4.4], 4.6, 5, [0, 1, 2, 3, 4]),
        ([0.4, 1.4, 2.4, 3.4, 4.4], 5.0, 2, [1, 3]),
        ([0.4], 5.0, 3, [0, 0, 0]),
        ([1.0, 3.0], 4.0, 1, [0]),  # half-way between two, the earlier one
    ],
)
def test_the_nearest_snippet_of_each_step(times, duration, steps, expected):
    features = np.arange(len(times), dtype=np.float32)
    assert rescale(features, np.array(times), duration, steps, "nearest").tolist() == expected


@pytest.mark.parametrize("method", [*METHODS, "nearest"])
def test_a_picture_that_is_held_keeps_its_features_and_is_at_rest(method):
    times = np.array([0.5, 1.5, 2.5, 7.5, 8.5, 9.5])  # it is held from 3 to 7 s
    values, others = np.array([1, 2, 3, 10, 11, 12], np.float32), [0, 1, 8, 9]
    held = rescale(values, times, 10.0, 10, method)
    np.testing.assert_allclose(held[3:7], 3)
    np.testing.assert_allclose(held[others], [1, 2, 11, 12], atol=0.2)
    still = rescale(values, times, 10.0, 10, method, motion=True)
    assert (still[4:6] == 0).all()
    np.testing.assert_allclose(still[others], held[others])


def test_a_part_that_is_slow_altogether_has_no_gaps_and_many_gaps_are_each_held():
    times, values = np.array([1.0, 2, 3, 7, 11, 15]), np.arange(6, dtype=np.float32)
    curve = rescale(values, times, 16.0, 16, "linear", motion=True)
    np.testing.assert_allclose(curve, np.interp(np.arange(16) + 0.5, times, values), atol=1e-6)
    times = np.cumsum(np.tile([1.0, 1.0, 5.0], 6))
    values = np.arange(1, len(times) + 1, dtype=np.float32)
    still = rescale(values, times, times[-1] + 1, 2000, "linear", motion=True)
    middles = snippet_times(2000, (times[-1] + 1) / 2000)
    for before, after in zip(times[1:-1:3], times[2::3], strict=True):
        inside = (middles > before + 0.6) & (middles < after - 0.6)
        assert inside.sum() > 50
        assert (still[inside] == 0).all()


@pytest.mark.parametrize("channels", [127, 129, 300])
def test_a_feature_is_rescaled_alike_alone_and_among_many(channels, rng):
    features = rng.normal(size=(50, channels)).astype(np.float32)
    times = np.sort(rng.uniform(0, 30, 50))
    together = rescale(features, times, 31.0, 20, "mean")
    for one in (0, channels - 1):
        pair = rescale(features[:, [one, one]], times, 31.0, 20, "mean")
        np.testing.assert_array_equal(together[:, one], pair[:, 0])


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (40, [0]),  # shorter than a window
        (100, [0]),
        (120, [0]),  # 20 are left: no more than the rest
        (121, [0, 21]),
        (150, [0, 50]),
        (220, [0, 50, 100]),
        (221, [0, 50, 100, 121]),
    ],
)
def test_the_windows_of_thumos14(steps, expected):
    assert window_starts(steps, window=100, stride=50, rest=20).tolist() == expected


@given(st.data(), st.integers(1, 200), st.integers(1, 30), st.integers(0, 20), st.integers(0, 3))
def test_windows_cover_all_but_the_rest_and_give_back_what_was_cut(
    data, steps, window, rest, channels
):
    """No window leaves a sequence that is long enough."""
    stride = data.draw(st.integers(1, window))
    starts = window_starts(steps, window, stride, rest)
    covered = np.zeros(steps, bool)
    for start in starts:
        covered[start : start + window] = True
    left = int((~covered).sum())
    assert left <= rest
    assert covered[: steps - left].all()
    assert len(set(starts.tolist())) == len(starts)
    assert steps <= window or (starts + window <= steps).all()

    shape = (steps, channels) if channels else (steps,)
    sequence = np.random.default_rng(steps).normal(size=shape).astype(np.float32)
    starts = window_starts(steps, window, stride, rest=0)
    parts = cut_windows(sequence, starts, window)
    assert parts.shape == (len(starts), window, *shape[1:])
    merged = merge_windows(parts, starts, steps)
    assert merged.dtype == np.float32
    np.testing.assert_allclose(merged, sequence, rtol=1e-6)


def test_overlaps_are_means_and_what_no_window_covers_is_zero():
    parts = np.array([[1.0, 2.0, 3.0], [5.0, 7.0, 9.0]], np.float32)
    assert merge_windows(parts, np.array([0, 2]), 6).tolist() == [1, 2, 4, 7, 9, 0]
    short = cut_windows(np.ones((2, 1), np.float32), np.array([0]), 4)
    assert short[0, :, 0].tolist() == [1, 1, 0, 0]
    assert merge_windows(short, np.array([0]), 2)[:, 0].tolist() == [1, 1]
