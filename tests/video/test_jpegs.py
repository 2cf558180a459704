"""Pictures stored as JPEG: at their size, and damaged; and as a network sees them."""

import cv2
import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from actionspan.errors import InputError
from actionspan.storage.writing import create_h5
from actionspan.video.jpegs import (
    JpegPictures,
    Position,
    flipped,
    read_pictures,
    square,
    write_jpegs,
)
from actionspan.video.optical_flow import quantise

COUNT, HEIGHT, WIDTH, PLANES = 3, 40, 51, 4


@pytest.fixture
def positions(rng) -> list[Position]:
    """Pictures that are blurred, so that JPEG keeps them."""

    def blurred(*shape):
        pictures = rng.normal(128, 400, (*shape, HEIGHT, WIDTH))
        smooth = [cv2.GaussianBlur(one, (0, 0), 6) for one in pictures.reshape(-1, HEIGHT, WIDTH)]
        return np.clip(smooth, 1, 255).astype(np.uint8).reshape(*shape, HEIGHT, WIDTH)

    rgb, planes = blurred(COUNT, 3), blurred(COUNT, PLANES)
    return [Position(np.moveaxis(rgb[k], 0, -1), planes[k], 0.5 * k) for k in range(COUNT)]


@pytest.fixture
def path(tmp_path, positions):
    with create_h5(tmp_path / "s.h5", "") as file:
        how = {"height": HEIGHT, "width": WIDTH, "quality": 95, "bound": 20.0}
        write_jpegs(file.create_group("v"), positions, **how)
    return tmp_path / "s.h5"


def stored(path) -> JpegPictures:
    return dict(read_pictures(path, "video", "a command", needed=()))["v"]


def test_pictures_come_back_with_what_a_group_tells_of_them(path, positions):
    pictures = stored(path)
    for row, position in enumerate(positions):
        pictures_of = {"rgb": position.rgb, "flow": np.moveaxis(position.planes, 0, -1)}
        for stream, wanted in pictures_of.items():
            assert np.abs(pictures.read(stream, row).astype(int) - wanted).mean() < 3
    assert (pictures.count, pictures.height, pictures.width) == (COUNT, HEIGHT, WIDTH)
    assert (pictures.planes, pictures.bound) == (PLANES, 20.0)
    assert pictures.times.tolist() == [0.0, 0.5, 1.0]


@pytest.mark.parametrize("stream", ["rgb", "flow"])
def test_a_picture_that_is_cut_off_is_damaged(path, stream):
    with h5py.File(path, "r+") as file:
        begin, end = file[f"v/{stream}_offsets"][1:3]
        file[f"v/{stream}"][end - 9 : end] = 0
    pictures = stored(path)
    pictures.read(stream, 0)
    with pytest.raises(InputError, match=f"s.h5: {stream} of video v is damaged at position 1"):
        pictures.read(stream, 1)


def test_files_in_another_form_name_who_makes_them(tmp_path, path):
    with pytest.raises(InputError, match="v is not a video; make it with a command"):
        list(read_pictures(path, "video", "a command", needed=("label",)))
    with h5py.File(path, "r+") as file:
        values = file["v/rgb"][:]
        del file["v/rgb"]
        file["v"].create_dataset("rgb", data=values, compression="gzip")
    with pytest.raises(InputError, match="not a video store: v is not a video"):
        stored(path)


def test_there_is_something_to_store(tmp_path):
    with (
        create_h5(tmp_path / "s.h5", "") as file,
        pytest.raises(InputError, match="no frames to store"),
    ):
        write_jpegs(file.create_group("v"), [], height=8, width=8, quality=90, bound=1.0)


@given(arrays(np.float32, (4, 6, 2), elements=st.floats(-30, 30, width=32)))
def test_mirrored_codes_are_the_codes_of_mirrored_vectors(flow):
    mirrored = flow[:, ::-1] * np.float32([-1, 1])
    np.testing.assert_array_equal(flipped(quantise(flow, 20.0), "flow"), quantise(mirrored, 20.0))


def test_colours_are_mirrored_as_they_are(rng):
    picture = rng.integers(0, 256, (5, 7, 3), np.uint8)
    np.testing.assert_array_equal(flipped(picture, "rgb"), picture[:, ::-1])


@given(st.integers(2, 60), st.integers(2, 60), st.integers(1, 40), st.integers(0, 9))
def test_channels_are_resized_one_by_one_or_at_once_with_the_same_bits(height, width, size, seed):
    picture = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
    everything = slice(None)
    apart = np.ascontiguousarray(picture.transpose(2, 0, 1)).transpose(1, 2, 0)
    whole = square(picture, everything, everything, size)
    assert whole.shape == (size, size, 3)
    assert whole.flags.c_contiguous
    np.testing.assert_array_equal(whole, square(apart, everything, everything, size))


@pytest.mark.parametrize("channels", [1, 2, 3, 6, 20])
def test_any_number_of_channels_is_resized(rng, channels):
    picture = rng.integers(0, 256, (24, 30, channels), np.uint8)
    part = square(picture, slice(4, 20), slice(7, 27), 8)
    assert part.shape == (8, 8, channels)
    wanted = cv2.resize(picture[4:20, 7:27, -1], (8, 8), interpolation=cv2.INTER_AREA)
    np.testing.assert_array_equal(part[:, :, -1], wanted)
