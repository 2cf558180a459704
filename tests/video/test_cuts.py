"""Where a video is cut: frames that differ more than those around them."""

import cv2
import numpy as np
import pytest

from actionspan.video.cuts import CutFinder
from actionspan.video.decode import Frame, read_frames
from actionspan.video.marks import Marks, marks_of
from video.numbered import write_film

RATE = 25
SIZE = (72, 96)
LEVELS = np.arange(256, dtype=np.uint8)


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


def with_luma(pictures) -> tuple[list[Frame], list[int]]:
    """Return frames that know their grey, and which of them are converted to pictures."""
    made = []

    def frame(number, shown) -> Frame:
        grey = cv2.cvtColor(shown, cv2.COLOR_RGB2GRAY)
        return Frame(lambda: made.append(number) or shown, number / RATE, lambda: (grey, LEVELS))

    return [frame(number, shown) for number, shown in enumerate(pictures)], made


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


def test_a_cut_into_stillness_keeps_its_colours_and_motion_before_it_is_not_converted():
    """A jump of 20 levels, three times the mean of 12 frames of motion and 12 of stillness."""
    levels = [100 + 10 * (n % 2) for n in range(40)]
    frames, made = with_luma(np.full((*SIZE, 3), level, np.uint8) for level in levels + [130] * 40)
    finder = CutFinder()
    assert len(list(finder.watch(frames))) == 80
    assert finder.found().tolist() == [[40 / RATE, 1]]
    assert set(made) & set(range(12, 80)) == {39, 40}


def test_a_still_video_and_none_at_all_have_no_cut():
    for count in (0, 1, 40):
        assert cuts_of([scene(RED, 0)] * count).shape == (0, 2)


def test_frames_pass_and_are_converted_only_where_a_cut_is_possible():
    pictures, finder = shots(RED, BLUE), CutFinder()
    frames, made = with_luma(pictures)
    assert all(one is other for one, other in zip(finder.watch(frames), frames, strict=True))
    assert set(made) == {49, 50}
    # levels of grey may be rounded before or after the mean, colours are the same
    np.testing.assert_array_equal(finder.found(), cuts_of(pictures))


@pytest.mark.parametrize(
    ("name", "has_luma", "how"),
    [
        ("limited.mp4", True, {}),
        ("full.mp4", True, {"pixels": "yuvj420p"}),
        ("422.mkv", True, {"codec": "ffv1", "pixels": "yuv422p"}),
        ("444.mkv", True, {"codec": "ffv1", "pixels": "yuv444p"}),
        ("odd.mkv", True, {"codec": "ffv1", "size": (75, 97)}),
        ("rotated.mp4", True, {"rotation": 90}),
        ("interlaced.mp4", True, {"options": {"x264-params": "tff=1"}}),
        ("grey.mkv", False, {"codec": "ffv1", "pixels": "gray"}),
        ("rgb.mkv", False, {"codec": "ffv1", "pixels": "bgr0"}),
        ("10bit.mkv", False, {"codec": "ffv1", "pixels": "yuv420p10le"}),
    ],
)
def test_every_format_of_pixels_has_its_cuts(name, has_luma, how, tmp_path):
    size, how = how.get("size", SIZE), {key: how[key] for key in how if key != "size"}
    path = write_film(tmp_path / name, shots(RED, BLUE, size=size), **how)
    finder, frames = CutFinder(), list(read_frames(path))
    assert len(list(finder.watch(frames))) == 100
    assert finder.found()[:, 0] == pytest.approx([2])
    for frame in frames[::30]:
        luma, picture = frame.luma(), frame.picture()
        assert (luma is not None) == has_luma
        if luma:
            grey = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY).astype(float)
            assert luma[0].shape == grey.shape
            # but where a colour at an edge is beyond what RGB can show
            assert np.quantile(np.abs(luma[1][luma[0]] - grey), 0.9) <= 2


@pytest.mark.parametrize(
    ("cuts", "seconds", "moving"), [(0, 60, 1), (2, 10, 1), (3, 10, 0), (4, 60, 1), (5, 60, 0)]
)
def test_bouts_of_edited_footage_do_not_count(cuts, seconds, moving):
    """It has more than two cuts, and more than one in 15 s."""
    marks = Marks(np.ones((cuts, 2)), np.array([[1.0, 4.0, 7.0]]))
    assert marks.is_edited(seconds) == (not moving)
    assert marks.moves(seconds).tolist() == [[1.0, 4.0]] * moving


def test_what_nobody_looked_for_is_not_there():
    marks = marks_of({"time": np.zeros(3), "cuts": np.array([[1, 0.5]])})
    assert [len(each) for each in marks] == [1, 0]
    assert [each.shape[1] for each in marks] == [2, 3]
