"""Still snippets: noise, light and flicker change nothing; someone far away does."""

from collections.abc import Callable

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.networks.names import NO_MOTION
from actionspan.video import optical_flow
from actionspan.video.decode import Frame
from actionspan.video.optical_flow import write_flow
from actionspan.video.settings import FlowSettings, FrameSettings
from actionspan.video.snippets import cut_snippets, snippet_batches
from actionspan.video.stillness import own_rows
from tiers import first_tier

LENGTH = 4  # frames of a snippet
Scene = Callable[[int], np.ndarray]
ROOM = np.random.default_rng(5).integers(40, 200, (32, 42, 3)).repeat(8, axis=0).repeat(8, axis=1)


def still(scene: Scene, count: int, noise: float = 0.0, **changed) -> list[bool]:
    """Return which of `count` snippets are still."""
    settings = FrameSettings(snippet_frames=LENGTH, short_side=256, **{"mover_side": 0, **changed})
    found = cut_snippets(noisy(scene, LENGTH * count, noise), settings)
    return [snippet.still for snippet in found]


def noisy(scene: Scene, count: int, noise: float) -> list[Frame]:
    draw = np.random.default_rng(2)

    def frame(number: int) -> Frame:
        seen = scene(number) + draw.normal(0, noise, ROOM.shape)
        picture = np.clip(np.rint(seen), 0, 255).astype(np.uint8)
        return Frame(lambda: picture, number / 25)

    return [frame(number) for number in range(count)]


def walker(row: int, column: int) -> np.ndarray:
    """Return the room with someone of 8 × 4 pixels in it."""
    seen = ROOM.copy()
    seen[row : row + 8, column : column + 4] = 230
    return seen


@pytest.mark.parametrize("noise", first_tier([0.0, 1.0, 2.0, 3.0, 4.0], 4.0))
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


def test_frames_that_differ_are_not_still_where_the_centres_are_alike():
    """Frames 2 and 3 of each snippet are looked at, and 2 is its centre."""
    found = still(lambda n: walker(40, 60) if n >= 16 and n % LENGTH == 3 else ROOM, 10)
    assert found == [False, *3 * [True], *6 * [False]]


@pytest.mark.full
def test_a_faint_change_is_seen_in_a_clean_picture_whatever_was_seen_before():
    """The noise is what neighbouring snippets differ by, not that of the first."""
    other = ROOM[:, ::-1]

    def scene(number: int) -> np.ndarray:
        faint = other.copy()
        faint[80:96, 80:96] += 4
        return ROOM if number < 8 else other if number < 8 + LENGTH * 70 else faint

    found = still(scene, 75)
    assert [n for n, each in enumerate(found) if not each] == [0, 2, 72]


def test_a_still_snippet_has_the_flow_of_the_last_across_blocks(monkeypatch):
    """In batches and in files, where noise makes some flow."""
    settings, flow = FrameSettings(snippet_frames=LENGTH, mover_side=0), FlowSettings(bound=0.5)
    frames = noisy(lambda n: ROOM if n < LENGTH else ROOM[:, ::-1], 9 * LENGTH, 3.0)
    made = list(snippet_batches(frames, settings, flow, 2))
    flags = np.concatenate([each.still for each in made])
    magnitude = np.concatenate([each.flow_magnitude for each in made])
    assert flags.tolist() == [False, False, *7 * [True]]
    assert (magnitude[2:] == magnitude[1]).all()
    assert magnitude[1] > 0

    monkeypatch.setattr(optical_flow, "_BLOCK", 2)
    found = list(cut_snippets(frames, settings))
    with h5py.File("still", "w", driver="core", backing_store=False) as file:
        source = file.create_group("frames")
        source["gray"] = np.stack([snippet.gray for snippet in found])
        source["still"] = [snippet.still for snippet in found]
        write_flow(source, file.create_group("flow"), flow)
        np.testing.assert_array_equal(file["flow/flow_magnitude"][:], magnitude)
        planes = file["flow/flow"][:]
        assert (planes[2:] == planes[1]).all()
        assert (planes[1] != NO_MOTION).any()


def test_flicker_and_slow_light_are_still_until_they_add_up():
    assert still(lambda n: ROOM + 1.5 * (n % 2), 8) == [False] + 7 * [True]
    found = still(lambda n: ROOM + 0.2 * n, 40)  # 0.8 levels a snippet
    computed = [n for n, each in enumerate(found) if not each]
    assert len(computed) >= 10
    assert set(np.diff(computed)) <= {3, 4}  # at more than 2 levels


def test_a_slow_shift_adds_up():
    def shifted(number: int) -> np.ndarray:
        return walker(30, 20) * (1 - number / 400) + walker(30, 28) * (number / 400)

    found = still(shifted, 60)
    assert 0.5 < np.mean(found) < 1
    assert found.count(False) > 5


@pytest.mark.full
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
