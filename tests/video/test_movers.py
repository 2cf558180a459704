"""The square around what moves: where it is, how large, and when it is known."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from actionspan.video.decode import Frame
from actionspan.video.movers import SMALLEST_SHARE, squares
from actionspan.video.settings import FrameSettings
from actionspan.video.snippets import cut_snippets

RED = (250, 30, 30)


def scenes(places, size=(180, 320), side=24, noise=0.0, light=None):
    """Return pictures of a textured wall with a red square at (x, y) centres, None: no square."""
    random = np.random.default_rng(5)
    wall = np.repeat(random.integers(60, 160, (*size, 1)), 3, axis=2).astype(float)
    made = []
    for number, place in enumerate(places):
        picture = wall + (light[number] if light else 0) + noise * random.normal(size=wall.shape)
        if place is not None:
            left, top = (int(value) - side // 2 for value in place)
            picture[top : top + side, left : left + side] = RED
        made.append(np.clip(picture, 0, 255).astype(np.uint8))
    return made


def red_share(picture) -> float:
    level = picture.astype(int)
    return float(((level[..., 0] > 180) & (level[..., 1] < 100)).mean())


def test_the_square_follows_what_moves_and_magnifies_it():
    path = [(40 + 12 * n, 90) for n in range(20)]
    pictures = scenes(path, noise=2.0)
    found = list(squares(pictures, 64))
    assert len(found) == 20
    assert {square.shape for square in found} == {(64, 64, 3)}
    for picture, square in zip(pictures, found, strict=True):
        assert red_share(square) > 3 * red_share(picture)


def test_where_nothing_moves_it_stays():
    pictures = scenes([(40 + 8 * n, 60) for n in range(6)] + [(80, 60)] * 20, noise=2.0)
    found = list(squares(pictures, 64))
    assert all(red_share(square) > 0.05 for square in found[6:])
    # and is the picture's centre before anything has moved
    still = scenes([None] * 3, size=(64, 128))
    np.testing.assert_array_equal(next(squares(still, 64)), still[0][:, 32:96])


def test_light_and_noise_are_not_motion():
    """A lamp brightens the whole picture: the square is where the small thing moves."""
    path = [(250 + 4 * (n % 3), 40) for n in range(12)]
    light = [0] * 5 + [40] * 7
    for square in squares(scenes(path, noise=3.0, light=light), 64):
        assert red_share(square) > 0.05


def test_it_is_there_before_the_motion():
    """Something at the edge begins to move: the square shows it from two pictures before."""
    pictures = scenes([(290, 150)] * 8 + [(290 - 10 * n, 150) for n in range(8)])
    found = list(squares(pictures, 64))
    assert red_share(found[0]) == 0
    assert red_share(found[6]) > 0.05


def test_a_square_is_known_four_pictures_later():
    taken = []

    def telling():
        for number, picture in enumerate(scenes([(40 + 9 * n, 90) for n in range(12)])):
            taken.append(number)
            yield picture

    known = squares(telling(), 32)
    for number in range(8):
        next(known)
        assert taken[-1] == number + 4
    assert len(list(known)) == 4


@settings(max_examples=40, deadline=None)
@given(
    height=st.integers(2, 90),
    width=st.integers(2, 90),
    count=st.integers(0, 12),
    side=st.integers(1, 40),
)
def test_pictures_of_any_size_have_a_square_each(height, width, count, side):
    random = np.random.default_rng(height)
    pictures = list(random.integers(0, 256, (count, height, width, 3), np.uint8))
    found = list(squares(pictures, side))
    assert [square.shape for square in found] == [(side, side, 3)] * count


def test_snippets_have_the_square_from_larger_pictures_than_they_keep():
    """Kept pictures have a short side of 45, of which the red square is 6 pixels."""
    pictures = scenes([(60 + 2 * n, 90) for n in range(64)])
    frames = [Frame(lambda picture=p: picture, n / 25) for n, p in enumerate(pictures)]
    plain = list(cut_snippets(frames, FrameSettings(short_side=45, mover_side=0)))
    with_squares = list(cut_snippets(frames, FrameSettings(short_side=45, mover_side=60)))
    assert [snippet.mover for snippet in plain] == [None] * 8
    for one, other in zip(plain, with_squares, strict=True):
        np.testing.assert_array_equal(one.rgb, other.rgb)
        np.testing.assert_array_equal(one.gray, other.gray)
        assert one.seconds == other.seconds
        assert other.mover.shape == (60, 60, 3)
        # of the picture's 180 rows the square has 3/8 or more, and all the red
        assert 5 * red_share(one.rgb) < red_share(other.mover)
        assert red_share(other.mover) < 1.2 * (24 / (180 * SMALLEST_SHARE)) ** 2
