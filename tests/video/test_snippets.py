"""Snippets: which frames are kept, at what size and time, and how they are stored."""

from pathlib import Path

import cv2
import h5py
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from actionspan.annotations.tables import Video
from actionspan.video.decode import Frame, fitted_size, reduced, resized
from actionspan.video.settings import FrameSettings
from actionspan.video.snippets import (
    cut_snippets,
    frame_differences,
    frames_of_shard,
    snippets,
    write_frames,
)
from video.numbered import encode, numbered_picture, read_number
from video.test_decode import OPEN
from worlds.videos import video_of


def plain_video(path: Path, frames: int, fps: float = 25.0) -> Video:
    return video_of(path.stem, frames / fps, fps, path=path)


def snippet_count(frames: int, snippet_frames: int) -> int:
    """Return how many snippets a video of `frames` ≥ 1 frames has."""
    return max(1, -(-(frames - snippet_frames // 2) // snippet_frames))


def flat_frames(count: int, made: list[int] | None = None) -> list[Frame]:
    """Return frames whose every pixel is their number (mod 256), in RGB and in grey."""

    def picture(number: int) -> np.ndarray:
        if made is not None:
            made.append(number)
        return np.full((4, 6, 3), number % 256, np.uint8)

    return [Frame(lambda number=n: picture(number), n / 25) for n in range(count)]


@given(frames=st.integers(1, 250), length=st.integers(1, 40), stack=st.integers(1, 50))
def test_snippets_are_those_of_the_definition(frames, length, stack):
    """Against a literal reading of the definition, for any length, overlapping windows too."""
    settings = FrameSettings(snippet_frames=length, stack=stack, still=False)
    found = list(cut_snippets(flat_frames(frames), settings))
    centres = [c for c in range(length // 2, frames, length)] or [frames - 1]
    assert len(found) == len(centres) == snippet_count(frames, length)
    for snippet, centre in zip(found, centres, strict=True):
        first = centre - stack // 2
        window = [min(max(first + i, 0), frames - 1) for i in range(stack + 1)]
        assert snippet.rgb[0, 0].tolist() == [centre] * 3
        assert snippet.gray[:, 0, 0].tolist() == window
        assert snippet.seconds == centre / 25


def test_only_frames_that_are_kept_are_converted():
    made: list[int] = []
    list(cut_snippets(flat_frames(100, made), FrameSettings(snippet_frames=16, stack=2)))
    kept = {c + d for c in range(8, 100, 16) for d in (-1, 0, 1)}
    assert set(made) == set(range(8)) | kept
    assert len(made) == len(set(made))


@given(height=st.integers(1, 5000), width=st.integers(1, 5000), side=st.integers(32, 512))
@example(height=241, width=427, side=256)
@example(height=257, width=4000, side=256)
def test_fitted_sizes_keep_the_aspect_and_never_enlarge(height, width, side):
    h, w = fitted_size(height, width, side)
    assert 0 < h <= height + 1
    assert 0 < w <= width + 1
    if min(height, width) <= side:
        assert (h, w) == (height, width)
    elif (h, w) != (height, width):
        assert abs(min(h, w) - side) <= 1
        assert h % 2 == w % 2 == 0
        scale = side / min(height, width)
        assert abs(h - height * scale) <= 1
        assert abs(w - width * scale) <= 1


@given(block=st.integers(2, 5), rows=st.integers(1, 9), columns=st.integers(1, 9), data=st.data())
def test_pictures_are_reduced_to_the_means_of_whole_blocks(block, rows, columns, data):
    """Pixels that fill no block, at the right and at the bottom, are left out."""
    rest = st.integers(0, block - 1)
    height, width = block * rows + data.draw(rest), block * columns + data.draw(rest)
    generator = np.random.default_rng(data.draw(st.integers(0, 9)))
    picture = generator.integers(0, 256, (height, width, 3), np.uint8)
    small = reduced(picture, (rows, columns))
    by = min(height // rows, width // columns)
    whole = picture[: height // by * by, : width // by * by]
    means = whole.reshape(height // by, by, width // by, by, 3).mean(axis=(1, 3))
    assert small.shape == means.shape
    assert np.abs(small - means).max() <= 0.5 + 1e-6
    np.testing.assert_array_equal(resized(small, small.shape[:2]), small)


LARGE = (480, 640), (720, 1280), (1080, 1920)


@pytest.mark.parametrize(
    "given", [pytest.param(each, marks=pytest.mark.full) for each in LARGE[::2]] + [LARGE[1]]
)
def test_large_pictures_are_resized_nearly_as_in_one_go(given):
    noise = np.random.default_rng(0).normal(size=(*given, 3))
    smooth = cv2.GaussianBlur(noise, (0, 0), given[0] / 40)
    picture = (128 + 60 * smooth / smooth.std()).clip(0, 255).astype(np.uint8)
    wanted = fitted_size(*given, 256)
    at_once = cv2.resize(picture, wanted[::-1], interpolation=cv2.INTER_AREA)
    away = resized(picture, wanted).astype(int) - at_once
    assert np.abs(away).mean() < (0.5 if given[0] >= 512 else 1e-9)


def test_frames_are_reduced_and_grey_is_the_grey_of_what_is_kept(tmp_path):
    path = encode(tmp_path / "big.mp4", 40, size=(128, 256))
    (first, second) = snippets(path, FrameSettings(snippet_frames=16, short_side=64, stack=2))
    assert first.rgb.shape == (64, 128, 3)
    assert first.gray.shape == (3, 64, 128)
    np.testing.assert_array_equal(first.gray[1], cv2.cvtColor(first.rgb, cv2.COLOR_RGB2GRAY))
    assert [read_number(gray) for gray in first.gray] == [7, 8, 9]
    assert [read_number(gray) for gray in second.gray] == [23, 24, 25]


def test_a_change_of_size_within_a_video_is_evened_out():
    sizes = [(64, 128)] * 20 + [(32, 64)] * 20
    frames = [Frame(lambda n=n, s=s: numbered_picture(n, *s), n / 25) for n, s in enumerate(sizes)]
    found = list(cut_snippets(frames, FrameSettings(snippet_frames=16)))
    assert {snippet.rgb.shape for snippet in found} == {(64, 128, 3)}
    assert [read_number(snippet.rgb) for snippet in found] == [8, 24]


@pytest.mark.parametrize("frames", [1, 8, 9, 24, 25, 300])
def test_exact_frames_of_real_files(frames, tmp_path):
    """`tests/footage` has more files."""
    path = encode(tmp_path / "v.mp4", frames, key_every=30, **OPEN)
    with h5py.File(tmp_path / "out.h5", "w") as file:
        group = file.create_group("v")
        write_frames(plain_video(path, frames), group, FrameSettings(snippet_frames=16, stack=5))
        centres = list(range(8, frames, 16)) or [frames - 1]
        assert [read_number(rgb) for rgb in group["rgb"]] == centres
        windows = np.clip(np.array(centres)[:, None] + np.arange(-2, 4), 0, frames - 1)
        found = [[read_number(gray) for gray in stack] for stack in group["gray"]]
        assert found == windows.tolist()
        np.testing.assert_allclose(group["time"], np.array(centres) / 25, atol=1e-9)
        types = {"rgb": "uint8", "gray": "uint8", "time": "float64", "frame_difference": "float32"}
        assert {name: str(group[name].dtype) for name in types} == types
        assert dict(group.attrs) == {
            **{"fps": 25.0, "frame_count": frames, "stated_frames": frames},
            **{"duration_seconds": frames / 25, "snippet_frames": 16, "sha256": "sha of v"},
        }


def test_frame_difference_in_closed_form():
    levels = np.array([10, 30, 25], np.uint8)
    gray = np.broadcast_to(levels[:, None, None], (3, 4, 5)).copy()
    assert frame_differences(gray) == pytest.approx((20 + 5) / 2 / 255)
    assert frame_differences(gray[:1].repeat(2, axis=0)) == 0


def test_a_damaged_real_file_leaves_nothing_behind(shared_data, tmp_path):
    video = plain_video(shared_data / "decode_cases" / "decord_corrupted.mp4", 50, 10.0)
    rejected = frames_of_shard([video], tmp_path / "shard.h5", FrameSettings(snippet_frames=16))
    assert "stopped at frame 28 of 50" in rejected["decord_corrupted"]
    with h5py.File(tmp_path / "shard.h5") as file:
        assert list(file) == []
