"""Where a video is cut: frames that differ more than those around them."""

import numpy as np
import pytest

from actionspan.video.cuts import CutFinder
from actionspan.video.decode import Frame, read_frames
from video.numbered import write_film

RATE = 25
SIZE = (72, 96)


def scene(colour, number, size=SIZE) -> np.ndarray:
    """A picture of a square that moves to and fro over a background of one colour."""
    picture = np.full((*size, 3), colour, np.uint8)
    side, left = size[0] // 4, abs(number % 100 - 50) * size[1] // 96
    picture[side : 2 * side, left : left + side] = (230, 230, 230)
    return picture


RED, GREEN, BLUE = (150, 30, 30), (30, 120, 30), (20, 40, 160)


def shots(*colours, size=SIZE):
    return [scene(colour, n, size) for colour in colours for n in range(50)]


def cuts_of(pictures) -> np.ndarray:
    finder = CutFinder()
    frames = [Frame(lambda p=p: p, n / RATE) for n, p in enumerate(pictures)]
    assert len(list(finder.watch(frames))) == len(pictures)
    return finder.found()


def test_cuts_of_a_file_are_found_to_the_frame(tmp_path):
    path = write_film(tmp_path / "spliced.mp4", shots(RED, GREEN, BLUE, RED), rate=RATE)
    finder = CutFinder()
    assert len(list(finder.watch(read_frames(path)))) == 200
    found = finder.found()
    np.testing.assert_allclose(found[:, 0], [2, 4, 6], atol=1e-6)
    assert (found[:, 1] > 0.5).all()


def test_a_large_picture_has_the_cuts_of_a_small_one():
    small, large = cuts_of(shots(RED, BLUE)), cuts_of(shots(RED, BLUE, size=(720, 960)))
    np.testing.assert_allclose(large, small, atol=0.02)
    assert small[:, 0] == pytest.approx([2])


def test_motion_fades_and_noise_are_no_cuts(rng):
    fade = [scene((30 + n, 60, 60), n) for n in range(150)]
    noise = [np.clip(p + rng.normal(0, 6, p.shape), 0, 255).astype(np.uint8) for p in fade]
    assert len(cuts_of(fade)) == len(cuts_of(noise)) == 0


@pytest.mark.parametrize(("jump", "count"), [(28, 0), (32, 1)])
def test_a_cut_differs_three_times_as_much_as_the_others(jump, count):
    """Of frames that differ by 10 levels each, without itself among them."""
    levels = [100 + 10 * (n % 2) for n in range(40)]
    levels += [levels[-1] + jump + 10 * (n % 2) for n in range(40)]
    found = cuts_of([np.full((*SIZE, 3), level, np.uint8) for level in levels])
    assert found[:, 0].tolist() == [40 / RATE] * count


@pytest.mark.parametrize("count", [0, 1, 40])
def test_a_still_video_and_none_at_all_have_no_cut(count):
    assert cuts_of([scene(RED, 0)] * count).shape == (0, 2)


def test_frames_pass_as_they_are_and_are_converted_once():
    made = []

    def picture(number):
        made.append(number)
        return scene(RED, number)

    frames = [Frame(lambda n=n: picture(n), n / RATE) for n in range(3)]
    for number, frame in enumerate(CutFinder().watch(frames)):
        assert frame.seconds == number / RATE
        for _ in range(2):
            np.testing.assert_array_equal(frame.picture(), scene(RED, number))
    assert made == [0, 1, 2]
