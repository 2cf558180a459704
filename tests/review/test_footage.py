"""Features of a folder's videos are made once, and again where what they rest on has changed."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from actionspan.errors import InputError
from actionspan.jobs import shards
from actionspan.jobs.shards import ShardWork, videos_at_once
from actionspan.review import footage
from actionspan.review.footage import Encoded, encode_all
from actionspan.storage.writing import create_h5
from dataset.conftest import encode_video


@pytest.fixture
def made(monkeypatch):
    """The ids of the videos that are encoded, in their order."""
    made = []

    def encode_each(jobs, settings, how, cameras):
        for video, out in jobs:
            made.append(video.video_id)
            with create_h5(out, "") as file:
                group = file.create_group(video.video_id)
                for name in footage.FACTS:
                    group[name] = np.zeros((0, 2) if name == "cuts" else 3, np.float32)
            yield 0, ""

    monkeypatch.setattr(footage, "encode_each", encode_each)
    return made


def encode(path: Path, folder: Path) -> Encoded:
    return next(encode_all([path], folder))


@pytest.fixture
def film(tmp_path):
    path = tmp_path / "film.mp4"
    encode_video(path, times=range(0, 400, 40))
    return path


def test_features_are_made_once_and_again_where_what_they_rest_on_changed(
    film, made, tmp_path, monkeypatch
):
    first = encode(film, tmp_path / "features")
    again = encode(film, tmp_path / "features")
    assert made == ["film"]
    assert again == first
    raw, facts = again.read()
    assert raw == {}
    assert facts["time"].dtype == np.float64
    os.utime(film, (0, 0))
    encode(film, tmp_path / "features")
    monkeypatch.setattr(footage, "__version__", "another")
    encode(film, tmp_path / "features").shard.unlink()
    encode(film, tmp_path / "features")
    assert made == ["film"] * 4


def test_a_video_that_could_not_be_encoded_is_tried_again(film, made, tmp_path, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(footage, "encode_each", lambda *given: ((0, why) for why in ["killed"]))
        assert encode(film, tmp_path / "features").video.error == "killed"
    assert encode(film, tmp_path / "features").video.error == ""
    film.write_bytes(b"")
    assert "empty" in encode(film, tmp_path / "features").video.error
    assert "No such file" in encode(tmp_path / "gone.mp4", tmp_path / "features").video.error
    assert made == ["film"]


def test_several_at_once_come_in_order_and_are_taken_when_one_is_free(film, tmp_path, monkeypatch):
    """The first takes longest; the third was made before; the fourth is no video."""
    names = [f"v{number}" for number in range(6)]
    paths = [Path(shutil.copy(film, tmp_path / f"{name}.mp4")) for name in names]
    paths[3].write_bytes(b"")
    asked, taken = [], []

    def encode_each(jobs, settings, how, cameras):
        """Two processes; the first video keeps one of them until all others are done."""
        asked.append(how.processes)
        waiting, held = enumerate(jobs), None
        while job := next(waiting, None):
            create_h5(job[1][1], "").__enter__()
            if job[1][0].video_id == "v0":
                held = job
            else:
                yield job[0], ""
        if held:
            yield held[0], ""

    monkeypatch.setattr(footage, "encode_each", encode_each)
    next(encode_all(paths[2:3], tmp_path / "features"))

    def given():
        for path in paths:
            taken.append(path.stem)
            yield path

    found = encode_all(given(), tmp_path / "features", ShardWork(processes=2))
    first = next(found)
    assert taken == names, "while the first was at work"
    every = [first, *found]
    assert [one.video.video_id for one in every] == names
    assert [one.video.video_id for one in every if one.video.error] == ["v3"]
    assert asked == [1, 2]


def test_processes_give_the_same_bytes_however_many(film, tmp_path):
    paths = [Path(shutil.copy(film, tmp_path / f"{name}.mp4")) for name in "abc"]
    alone, together = (
        list(encode_all(paths, tmp_path / f"{count}", ShardWork(processes=count)))
        for count in (1, 2)
    )
    assert [one.video for one in alone] == [one.video for one in together]
    for one, other in zip(alone, together, strict=True):
        assert one.shard.read_bytes() == other.shard.read_bytes()


def test_as_many_at_once_as_cores_and_memory_allow(monkeypatch):
    monkeypatch.setattr(shards, "workers_within", lambda items, size: min(items, 8))
    for jobs, threads, expected in ((None, 1, 5), (None, 2, 4), (None, 100, 1), (3, 2, 3)):
        assert videos_at_once(jobs, 5, threads) == expected
    with pytest.raises(InputError, match="^--jobs 0: at least 1$"):
        videos_at_once(0, 5, 1)
