"""When something moves: a still picture in which a box moves, and other simple films."""

from collections.abc import Iterator
from fractions import Fraction

import cv2
import numpy as np
import pytest

from actionspan.propose.proposed import MotionProposer
from actionspan.video.bouts import find_bouts
from tiers import first_tier
from video.numbered import write_film

MOVES = ((8.0, 12.0), (20.0, 23.0))  # seconds, of the plainest case


def pictures(
    *,
    rate: float,
    seconds: float,
    moves: tuple[tuple[float, float], ...],
    noise: float = 0,
    light: float = 0,
    places: int = 1,
    speed: float = 60,
    size: int = 24,
) -> Iterator[np.ndarray]:
    """Draw a still picture in which boxes move to and fro, with noise and slow light."""
    rng = np.random.default_rng(0)
    width, height = 320, 240
    scene = cv2.GaussianBlur(rng.integers(40, 200, (height, width)).astype(np.float32), (0, 0), 6)
    scene = (scene - scene.mean()) * 4 + 110
    way = width - size - 40
    for number in range(round(seconds * rate)):
        time = number / rate
        moved = sum(max(0.0, min(time, end) - start) for start, end in moves)
        picture = scene + light * np.sin(2 * np.pi * time / 20)
        for place in range(places):
            along = (moved * speed + place * width / 3) % (2 * way)
            x, y = 20 + min(along, 2 * way - along), height * (place + 1) // (places + 1) - 12
            shift = np.array([[1, 0, x], [0, 1, y]], np.float32)
            box = cv2.warpAffine(np.ones((size, size), np.float32), shift, (width, height))
            picture = picture * (1 - box) + box * 235
        if noise:
            picture = picture + rng.normal(0, noise, picture.shape)
        yield np.repeat(picture.clip(0, 255).astype(np.uint8)[..., None], 3, 2)


WITH_NOISE = {"noise": 5, "light": 20, "places": 3}
CASES = [
    {},
    {"noise": 5},
    {"moves": ()},
    *({"rate": rate} for rate in (1, 2, 5, 12, 60, 240)),
    *({"rate": rate, "noise": 5} for rate in (2, 60)),
    *({"noise": 2}, {"noise": 10}, {"light": 10}, {"light": 40}, {"places": 3}, WITH_NOISE),
    *({"codec": "mpeg4"}, {"codec": "mpeg4", "noise": 5}),
    *({"speed": 10}, {"speed": 150}, {"speed": 20, "noise": 5}, {"size": 12, "noise": 5}),
    *({"moves": ((8.0, 8.2), (20.0, 20.4))}, {"moves": ((8.0, 12.0), (20.0, 20.2))}),
    *({"moves": ((3.0, 23.0),), "seconds": 26.0}, {"moves": (), "noise": 10}),
    {"moves": (), "light": 40, "noise": 3},
]


@pytest.mark.parametrize("case", first_tier(CASES, {}))
def test_a_box_in_a_still_picture_gives_its_movements_and_no_other_event(case, tmp_path):
    drawn = {"rate": 25, "seconds": 25.0, "moves": MOVES} | case
    how = {"rate": Fraction(drawn["rate"]), "codec": drawn.pop("codec", "libx264")}
    path = write_film(tmp_path / "film.mp4", pictures(**drawn), **how)
    found = MotionProposer().propose(path).events
    within = max(0.3, 1 / drawn["rate"] + 0.01)
    assert sorted(found.tolist()) == pytest.approx(np.array(drawn["moves"]), abs=within)


def test_a_bout_ends_where_motion_falls_back_to_what_is_usual():
    rng = np.random.default_rng(1)
    usual, more = [4.0] * 100, [20.0] * 40
    motion = np.array([*usual, *more, *usual, *more, *usual])
    levels = np.zeros((len(motion), 300))
    levels[:, :30] = rng.normal(0, 4, (len(motion), 30)) * motion[:, None]
    times = np.arange(len(motion) + 1) / 10
    found = find_bouts(times, levels.clip(-127, 127).astype(np.int8))
    ends = np.array([[10.0, 14.0], [24.0, 28.0]])
    assert found[np.argsort(found[:, 0]), :2] == pytest.approx(ends, abs=0.6)


def test_what_comes_again_and_again_without_a_rest_is_divided_into_its_periods():
    rng = np.random.default_rng(2)
    period = rng.normal(0, 20, (20, 300))
    levels = np.tile(np.rint(period), (12, 1)).clip(-127, 127).astype(np.int8)
    found = find_bouts(np.arange(len(levels) + 1) / 10, levels)[:, :2]
    assert np.diff(found, axis=1).ravel() == pytest.approx(2.0, abs=0.1)
    assert len(found) == 12
    once = rng.normal(0, 80, (240, 300)).clip(-127, 127).astype(np.int8)
    assert len(find_bouts(np.arange(len(once) + 1) / 10, once)) <= 2


def test_light_that_changes_all_blocks_alike_is_no_motion():
    levels = np.rint(40 * np.sin(np.arange(200) / 20))[:, None].repeat(300, 1).astype(np.int8)
    assert len(find_bouts(np.arange(201) / 10, levels)) == 0


@pytest.mark.parametrize("count", [0, 1, 2])
def test_fewer_than_three_pictures_have_no_bout(count):
    levels = np.full((max(count - 1, 0), 300), 100, np.int8)
    assert find_bouts(np.arange(float(count)), levels).shape == (0, 3)
