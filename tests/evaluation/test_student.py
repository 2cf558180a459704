"""Student's t against printed tables and against its own density."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.student import incomplete_beta, student_quantile, upper_tail

TABLE = {  # degrees: the two-sided 95 % and 99 % points
    1: (12.7062047, 63.6567412),
    2: (4.3026527, 9.9248432),
    3: (3.1824463, 5.8409093),
    5: (2.5705818, 4.0321430),
    10: (2.2281389, 3.1692727),
    30: (2.0422725, 2.7499957),
    120: (1.9799304, 2.6174211),
}


@pytest.mark.parametrize("degrees", TABLE)
def test_quantiles_are_those_of_the_tables(degrees):
    for probability, expected in zip((0.975, 0.995), TABLE[degrees], strict=True):
        assert student_quantile(probability, degrees) == pytest.approx(expected, rel=1e-7)


def test_many_degrees_are_the_normal_distribution():
    assert student_quantile(0.975, 1e7) == pytest.approx(1.9599640, rel=1e-6)


@pytest.mark.parametrize("degrees", [0.7, 2.5, 7.3, 41.9])
def test_the_tail_is_the_integral_of_the_density(degrees):
    """Degrees that are not whole, as Welch and Satterthwaite give them."""
    front = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2))
    angles = np.linspace(0, math.atan(1.7 / math.sqrt(degrees)), 20001)  # t = √ν·tan(angle)
    density = front / math.sqrt(math.pi) * np.cos(angles) ** (degrees - 1)
    assert upper_tail(1.7, degrees) == pytest.approx(0.5 - np.trapezoid(density, angles), rel=1e-6)


@given(st.floats(0.001, 0.999), st.floats(0.5, 1e4))
def test_the_quantile_undoes_the_tail_and_is_odd(probability, degrees):
    value = student_quantile(probability, degrees)
    beyond = upper_tail(abs(value), degrees)
    assert beyond == pytest.approx(min(probability, 1 - probability), rel=1e-6, abs=1e-12)
    assert student_quantile(1 - probability, degrees) == pytest.approx(-value, rel=1e-6, abs=1e-9)


@given(st.floats(0.01, 0.99), st.floats(0.2, 50), st.floats(0.2, 50))
def test_both_sides_of_the_beta_function_sum_to_one(x, a, b):
    total = incomplete_beta(x, 1 - x, a, b) + incomplete_beta(1 - x, x, b, a)
    assert total == pytest.approx(1, abs=1e-10)


def test_the_ends_of_the_beta_function():
    assert incomplete_beta(0, 1, 2, 3) == 0
    assert incomplete_beta(1, 0, 2, 3) == 1
    assert incomplete_beta(0.3, 0.7, 1, 1) == pytest.approx(0.3)
    assert incomplete_beta(0.3, 0.7, 2, 1) == pytest.approx(0.09)


@pytest.mark.parametrize(("probability", "degrees"), [(0, 3), (1, 3), (0.9, 0), (0.9, math.nan)])
def test_values_out_of_range_are_refused(probability, degrees):
    with pytest.raises(ValueError, match="it must"):
        student_quantile(probability, degrees)
