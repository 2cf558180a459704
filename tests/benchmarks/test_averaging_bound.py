"""Theorems 1 and 2 of paper 003: their formulas, and what they do and do not say."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import averaging_bound as theorems
from averaging_bound import first_bound, noise_minimum, second_bound

CONSTANTS = {"gap": 2.0, "smoothness": 8.0, "variance": 3.0, "variance_growth": 0.5}
TRAINING = theorems.Training(**CONSTANTS, learners=16, step_size=0.01, batch=32)


def slope(function, k):
    """Return the derivative by a complex step, which does not cancel."""
    return function(k + 1e-30j).imag / 1e-30


def test_the_first_bound_is_the_printed_one():
    """F gap 2, L 8, M 3, P 16, γ 0.01, B 32, K 4, N 25, by hand."""
    descent = 2 * 2 / (25 * 5 * 0.01)
    noise = 0.08 * 3 / 32 * (1 / 16 + 8 * 4 * 0.01 / 2)
    ratio = (16 * 0.08 * 4 + 1) / (16 * 0.08 * 3 + 1)
    assert first_bound(TRAINING, 4, 25) == pytest.approx((descent + noise) * ratio, rel=1e-12)
    assert theorems.first_holds(TRAINING, 1) == (32 >= 0.08 * 1.5 * (0.08 + 1 / 16))


@given(st.floats(0.05, 20), st.floats(1, 100))
def test_the_printed_derivatives_are_right(a, k):
    f = 3 * (2 * a * k + 1) * (1 - a) / ((k + 1) ** 2 * (a * (k - 1) + 1) ** 2)
    g = 3 * (a**2 * k**2 + 2 * a * (1 - a) * k + 1 - a) / (a * (k - 1) + 1) ** 2
    descent = slope(lambda x: theorems.descent_part(3.0, a, x), k)
    assert descent == pytest.approx(f, rel=1e-8, abs=1e-12)
    assert slope(lambda x: theorems.noise_part(3.0, a, x), k) == pytest.approx(
        g, rel=1e-8, abs=1e-9
    )


@given(st.floats(1.01, 50))
def test_the_printed_minimum_of_g_is_right_and_below_2(a):
    def noise(x):
        return theorems.noise_part(1.0, a, x)

    best = noise_minimum(a)
    assert 0 < best < 2
    assert (best < 1) == (a < (1 + math.sqrt(5)) / 2)
    assert slope(noise, best) == pytest.approx(0, abs=1e-6)
    for other in (best * 0.9, best * 1.1):
        if a * (other - 1) + 1 > 0:
            assert noise(other) > noise(best)


@given(st.floats(0, 10), st.floats(0.01, 10), st.integers(1, 64), st.integers(1, 500))
def test_the_second_bound_is_no_less_than_the_first_under_its_conditions(gap, rate, p, k):
    training = replace(TRAINING, gap=gap, step_size=rate, learners=p, batch=10**9)
    if theorems.second_holds(training, k):
        assert theorems.first_holds(training, k)
        first, second = first_bound(training, k, 1000 / k), second_bound(training, k, 1000)
        assert first <= second * (1 + 1e-9)
    at_equality = 2 / training.product  # K where 1/P = LKγ/2: both are one
    assert first_bound(training, at_equality, 1000 / at_equality) == pytest.approx(
        second_bound(training, at_equality, 1000)
    )


@given(
    st.floats(0.001, 1), st.floats(0, 1e3), st.floats(0, 1e3), st.integers(1, 64),
    st.integers(1, 300),
)  # fmt: skip
def test_k_1_has_the_least_bound_where_a_is_1_or_less(a, gap, variance, learners, steps):
    training = theorems.Training(
        gap=gap, smoothness=a / learners, variance=variance, learners=learners, step_size=1.0,
        batch=10,
    )  # fmt: skip
    found = theorems.suggest_interval(training, steps)
    if training.product <= 1:
        assert found.theorem_says_one
        one = first_bound(training, 1, steps)
        assert found.bound == pytest.approx(one, rel=1e-12), "K = 1, or a tie with it"


def test_where_theorem_2_names_k_1_its_own_condition_excludes_it():
    training = replace(TRAINING, learners=4)
    holds = [theorems.second_holds(training, k) for k in (1, 6, 7)]
    assert holds == [False, False, True], "2 / a = 6.25"


def test_above_1_the_promise_of_a_best_k_above_1_does_not_always_hold():
    """As printed, theorem 2 says K_opt > 1 whenever 1 < PLγ; the proof itself ends with ≥ 1."""
    training = theorems.Training(
        gap=1e-6, smoothness=1.2, variance=1.0, learners=1, step_size=1.0, batch=1000
    )
    assert training.product == pytest.approx(1.2)
    assert noise_minimum(1.2) < 1
    one, *more = (second_bound(training, k, 1000) for k in range(1, 1001))
    assert one < min(more)
    wide = theorems.suggest_interval(replace(training, gap=1e9), 1000)
    assert wide.interval > 1
    assert not wide.theorem_says_one


@pytest.mark.parametrize("rate", [0.001, 0.02, 0.2])
@pytest.mark.parametrize(("gap", "steps"), [(0.01, 1), (1.0, 40), (100.0, 3000)])
def test_the_suggestion_is_the_best_of_all_it_may_choose(gap, rate, steps):
    training = replace(TRAINING, gap=gap, step_size=rate)
    found = theorems.suggest_interval(training, steps)
    allowed = [k for k in range(1, steps + 1) if theorems.first_holds(training, k)]
    bounds = {k: first_bound(training, k, steps / k) for k in allowed}
    assert found.interval == min(bounds, key=bounds.__getitem__)
    assert (found.bound, found.product) == (bounds[found.interval], 16 * 8 * rate)


def test_the_interval_is_no_longer_than_the_batch_allows():
    large = replace(TRAINING, gap=1e9, step_size=1.0, batch=1000)
    found = theorems.suggest_interval(large, 100)
    assert found.interval == math.floor((1000 / (8 * 1.5) - 1 / 16) / 8)
    with pytest.raises(ValueError, match="batch 10 is too small for theorem 1 with step size"):
        theorems.suggest_interval(replace(large, batch=10), 100)


def test_constants_are_found_on_a_quadratic():
    """F = ½·wᵀAw, and a sample's gradient is Aw plus noise of known variance."""
    random = np.random.default_rng(4)
    curvature = np.diag([5.0, 1.0, 0.1])
    deviation, batch, batches = np.array([1.0, 2.0, 0.5]), 8, 4000
    noise = random.normal(size=(batches, batch, 3)).mean(axis=1) * deviation
    points = np.array([[1.0, 1, 1], [0.5, 1, 1], [0.5, 0.2, 0.0]])
    gradients = points[:, None] @ curvature + noise
    smoothness, variance = theorems.estimate_constants(points, gradients, batch)
    assert smoothness == pytest.approx(5.0, rel=1e-9), "the first move is along the steepest axis"
    assert variance == pytest.approx(float((deviation**2).sum()), rel=0.05)
    lower, _ = theorems.estimate_constants(points[1:], gradients[1:], batch)
    assert lower < 1.0, "a lower bound only"
