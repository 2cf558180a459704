"""The flow histogram against motions whose answer is known."""

import numpy as np
import pytest

from actionspan.features.encoders import HISTOGRAM_FEATURES, flow_histogram
from actionspan.video.optical_flow import CODES, quantise

BOUND = 20.0
HEIGHT, WIDTH = 96, 144
CELLS = 16


def planes(x: np.ndarray | float, y: np.ndarray | float, pairs: int = 3) -> np.ndarray:
    """Quantise one motion field, the same for every pair."""
    fields = [np.broadcast_to(field, (HEIGHT, WIDTH)) for field in (x, y)]
    return np.tile(quantise(np.stack(fields).astype(np.float32), BOUND), (pairs, 1, 1))


def decoded(planes: np.ndarray) -> np.ndarray:
    """Undo the signed square root of their histogram."""
    values = flow_histogram(planes, BOUND)
    return np.sign(values) * values.astype(np.float64) ** 2


def test_stillness_and_a_moving_camera_leave_nothing_but_the_camera():
    still = decoded(planes(0, 0))
    moving = decoded(planes(6.0, -4.0))
    for values in (still, moving):
        np.testing.assert_allclose(np.delete(values, [-4, -3]), 0, atol=1e-6)
    np.testing.assert_array_equal(still, 0)
    half_a_code = 100 * BOUND / CODES / HEIGHT / 2
    camera = 100 * np.array([6.0, -4.0]) / HEIGHT  # percent of the height
    np.testing.assert_allclose(moving[-4:-2], camera, atol=1.01 * half_a_code)


@pytest.mark.parametrize("orientation", range(8))
def test_a_moving_cell_shows_its_place_its_direction_and_its_speed(orientation):
    angle = orientation * np.pi / 4
    x, y = np.zeros((HEIGHT, WIDTH)), np.zeros((HEIGHT, WIDTH))
    rows, columns = slice(24, 48), slice(72, 108)  # cell (1, 2) of 4 × 4
    x[rows, columns], y[rows, columns] = 8 * np.cos(angle), 8 * np.sin(angle)
    values = decoded(planes(x, y))
    cells = values[: CELLS * 11].reshape(CELLS, 11)
    moving = cells[1 * 4 + 2]
    speed = 100 * 8 / HEIGHT
    assert moving[orientation] == pytest.approx(speed, rel=0.03)
    assert np.delete(moving[:8], orientation).max() < 0.03 * speed
    expected = [speed, speed * np.cos(angle), speed * np.sin(angle)]
    np.testing.assert_allclose(moving[8:], expected, atol=0.03 * speed)
    np.testing.assert_allclose(np.delete(cells, 6, axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(values[CELLS * 11 : 17 * 11], moving / CELLS, atol=1e-6)


def test_between_two_orientations_magnitude_is_shared_and_kept():
    x, y = np.zeros((HEIGHT, WIDTH)), np.zeros((HEIGHT, WIDTH))
    x[:24, :36], y[:24, :36] = 8 * np.cos(np.pi / 8), 8 * np.sin(np.pi / 8)
    cell = decoded(planes(x, y))[:11]
    assert cell[0] == pytest.approx(cell[1], rel=0.05)
    assert cell[:8].sum() == pytest.approx(cell[8], rel=1e-5)


def test_flow_of_the_same_share_of_the_frame_is_the_same_at_any_size():
    x = np.zeros((HEIGHT, WIDTH))
    x[:24, :36] = 8.0
    small = planes(x, 0)
    large = small.repeat(2, axis=1).repeat(2, axis=2)
    out = flow_histogram(small, BOUND)
    assert out.shape == (HISTOGRAM_FEATURES,)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, flow_histogram(large, 2 * BOUND), atol=1e-5)
