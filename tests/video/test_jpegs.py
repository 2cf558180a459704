"""Pictures stored as JPEG: at their size, and damaged."""

import cv2
import h5py
import numpy as np
import pytest

from actionspan.errors import InputError
from actionspan.storage.writing import create_h5
from actionspan.video.jpegs import JpegPictures, Position, read_pictures, write_jpegs

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
        write_jpegs(
            file.create_group("v"), positions, height=HEIGHT, width=WIDTH, quality=95, bound=20.0
        )
    return tmp_path / "s.h5"


def stored(path) -> JpegPictures:
    return dict(read_pictures(path, "video", "a command", needed=()))["v"]


def test_a_group_tells_what_it_holds(path):
    pictures = stored(path)
    assert (pictures.count, pictures.height, pictures.width) == (COUNT, HEIGHT, WIDTH)
    assert (pictures.planes, pictures.bound) == (PLANES, 20.0)
    assert pictures.times.tolist() == [0.0, 0.5, 1.0]


@pytest.mark.parametrize("row", range(COUNT))
def test_pictures_come_back(path, positions, row):
    pictures = stored(path)
    wanted = {"rgb": positions[row].rgb, "flow": np.moveaxis(positions[row].planes, 0, -1)}
    for stream, picture in wanted.items():
        whole = pictures.read(stream, row).astype(int)
        assert np.abs(whole - picture).mean() < 3


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
