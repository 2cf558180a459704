"""Features of a folder's videos are made once, and again where what they rest on has changed."""

import os
from pathlib import Path

import numpy as np
import pytest

from actionspan.files.storage import create_h5
from actionspan.review import footage
from actionspan.review.footage import Encoded, encode_all
from dataset.conftest import encode_video


@pytest.fixture
def made(monkeypatch):
    """The ids of the videos that are encoded, in their order."""
    made = []

    def encode_each(jobs, settings, how):
        for video, out in jobs:
            made.append(video.video_id)
            with create_h5(out, "") as file:
                group = file.create_group(video.video_id)
                for name in footage.FACTS:
                    group[name] = np.zeros((0, 2) if name == "cuts" else 3, np.float32)
            yield ""

    monkeypatch.setattr(footage, "encode_each", encode_each)
    return made


def encode(path: Path, folder: Path) -> Encoded:
    return next(encode_all([path], folder))


@pytest.fixture
def film(tmp_path):
    path = tmp_path / "film.mp4"
    encode_video(path, times=range(0, 400, 40))
    return path


def test_a_second_call_makes_nothing(film, made, tmp_path):
    first = encode(film, tmp_path / "features")
    again = encode(film, tmp_path / "features")
    assert made == ["film"]
    assert again == first
    raw, facts = again.read()
    assert raw == {}
    assert facts["time"].dtype == np.float64


@pytest.mark.parametrize("change", ["file", "version", "features"])
def test_what_they_rest_on_makes_them_again(film, made, tmp_path, monkeypatch, change):
    one = encode(film, tmp_path / "features")
    if change == "file":
        os.utime(film, (0, 0))
    elif change == "version":
        monkeypatch.setattr(footage, "__version__", "another")
    else:
        one.shard.unlink()
    encode(film, tmp_path / "features")
    assert made == ["film", "film"]


def test_a_video_that_could_not_be_encoded_is_tried_again(film, made, tmp_path, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(footage, "encode_each", lambda *given: (why for why in ["killed"]))
        assert encode(film, tmp_path / "features").video.error == "killed"
    assert encode(film, tmp_path / "features").video.error == ""
    assert made == ["film"]


def test_a_file_that_is_none_is_said(tmp_path, made):
    (tmp_path / "film.mp4").write_bytes(b"")
    assert "empty" in encode(tmp_path / "film.mp4", tmp_path / "features").video.error
    assert "No such file" in encode(tmp_path / "gone.mp4", tmp_path / "features").video.error
    assert made == []
