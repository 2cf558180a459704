"""Still snippets: noise, light and flicker change nothing; someone far away does."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.video.decode import Frame
from actionspan.video.settings import FrameSettings
from actionspan.video.snippets import cut_snippets
from actionspan.video.stillness import own_rows

LENGTH = 4  # frames of a snippet
Scene = Callable[[int], np.ndarray]
ROOM = np.random.default_rng(5).integers(40, 200, (32, 42, 3)).repeat(8, axis=0).repeat(8, axis=1)


def still(scene: Scene, count: int, noise: float = 0.0, **changed) -> list[bool]:
    """Return which of `count` snippets are still."""
    draw = np.random.default_rng(2)

    def frame(number: int) -> Frame:
        seen = scene(number) + draw.normal(0, noise, ROOM.shape)
        picture = np.clip(np.rint(seen), 0, 255).astype(np.uint8)
        return Frame(lambda: picture, number / 25)

    settings = FrameSettings(snippet_frames=LENGTH, short_side=256, **{"mover_side": 0, **changed})
    found = cut_snippets([frame(n) for n in range(LENGTH * count)], settings)
    return [snippet.still for snippet in found]


def walker(row: int, column: int) -> np.ndarray:
    """Return the room with someone of 8 × 4 pixels in it."""
    seen = ROOM.copy()
    seen[row : row + 8, column : column + 4] = 230
    return seen


@pytest.mark.parametrize("noise", [0.0, 1.0, 2.0, 3.0, 4.0])
def test_noise_alone_is_still(noise):
    found = still(lambda _: ROOM, 40, noise)
    assert not found[0]
    # while little is known of the noise a chance may be taken for a change
    assert found.count(False) <= 3
    assert all(found[10:])


@pytest.mark.parametrize("noise", [0.0, 3.0])
def test_someone_small_is_not(noise):
    found = still(lambda n: walker(20, 10 + 2 * min(max(n - 16, 0), 16)), 14, noise)
    assert found[1:4] == 3 * [True]
    assert not any(found[4:8])
    assert found[9:] == 5 * [True]


def test_what_was_there_when_nothing_moves_is_seen():
    """Between two snippets, as where frames between the centres are not looked at."""
    found = still(lambda n: walker(40, 60) if n >= 20 else ROOM, 10)
    assert found == [False, *4 * [True], False, *4 * [True]]


def test_flicker_and_slow_light_are_still_until_they_add_up():
    assert still(lambda n: ROOM + 1.5 * (n % 2), 8) == [False] + 7 * [True]
    found = still(lambda n: ROOM + 0.2 * n, 40)  # 0.8 levels a snippet
    computed = [n for n, each in enumerate(found) if not each]
    assert set(np.diff(computed)) <= {3, 4}  # at more than 2 levels


def test_a_slow_shift_adds_up():
    def shifted(number: int) -> np.ndarray:
        return walker(30, 20) * (1 - number / 400) + walker(30, 28) * (number / 400)

    found = still(shifted, 60)
    assert 0.5 < np.mean(found) < 1
    assert found.count(False) > 5


def test_a_camera_that_turns_is_never_still():
    assert not any(still(lambda n: np.roll(ROOM, n, axis=1), 10))
    assert not any(still(lambda n: np.roll(ROOM, n, axis=1), 10, noise=3.0))


def test_a_square_that_is_elsewhere_counts():
    """It looks ahead: it moves before anything in its snippet does."""
    plain = still(lambda n: walker(70, 2 * max(n - 60, 0)), 20)
    with_square = still(lambda n: walker(70, 2 * max(n - 60, 0)), 20, mover_side=32)
    assert plain[11:15] == 4 * [True]
    assert not all(with_square[11:15])


def test_it_can_be_switched_off():
    assert not any(still(lambda _: ROOM, 5, still=False))


@given(st.lists(st.booleans(), min_size=1, max_size=20))
def test_rows_are_those_of_the_last_that_is_not_still(mask):
    rows, last = [], -1
    for each in mask:
        last += not each
        rows.append(last)
    assert own_rows(np.array(mask)).tolist() == rows
