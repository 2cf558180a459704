"""Frames of clips: which are kept, for which samples, and that a video is decoded once."""

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.video.clips import ClipWriter
from actionspan.video.decode import Frame, read_frames
from actionspan.video.settings import FrameSettings
from actionspan.video.snippets import write_frames
from video.numbered import encode, numbered_picture, read_number
from video.test_snippets import plain_video

CLIPS = FrameSettings(snippet_frames=16, stack=2, clips=True)


def nearest(milliseconds: list[int], every: int) -> list[int]:
    """Return the frame nearest to each multiple of `every` ms; of two as near, the earlier."""
    samples = range(0, milliseconds[-1] + 1, every)
    frames = range(len(milliseconds))
    return [min(frames, key=lambda frame: abs(milliseconds[frame] - at)) for at in samples]


def shown(group: h5py.Group) -> list[int]:
    """Return the number in the picture of each sample."""
    numbers = [read_number(picture) for picture in group["clip"]]
    return [numbers[row] for row in group["clip_row"]]


@pytest.fixture
def group(tmp_path):
    with h5py.File(tmp_path / "out.h5", "w") as file:
        yield file.create_group("v")


@given(gaps=st.lists(st.integers(1, 130), max_size=60))
def test_samples_are_the_nearest_frames(gaps):
    milliseconds = np.cumsum([0, *gaps]).tolist()
    expected = nearest(milliseconds, 40)
    made: list[int] = []

    def picture(number: int) -> np.ndarray:
        made.append(number)
        return np.full((4, 6, 3), number, np.uint8)

    with h5py.File("x", "w", driver="core", backing_store=False) as file:
        writer = ClipWriter(file.create_group("v"), CLIPS)
        for number, at in enumerate(milliseconds):
            writer.add(Frame(lambda number=number: picture(number), at / 1000))
        writer.close()
        kept = file["v/clip"][:, 0, 0, 0]
        assert kept[file["v/clip_row"][:]].tolist() == expected
    assert kept.tolist() == made == sorted(set(expected))  # only these are converted, and once


@pytest.mark.parametrize("rate", [1, 10, 20, 25, 30, 50, 60])
def test_any_frame_rate_becomes_25_a_second(rate, tmp_path, group):
    path = encode(tmp_path / "v.mp4", 3 * rate, rate=rate)
    write_frames(plain_video(path, 3 * rate, rate), group, CLIPS)
    # frames and samples as multiples of 1/300 s, which both rates divide
    assert shown(group) == nearest([300 // rate * n for n in range(3 * rate)], 12)
    assert group["clip"].attrs["rate"] == 25.0
    assert group["clip"].dtype == np.uint8


def test_another_rate(tmp_path, group):
    path = encode(tmp_path / "v.mp4", 50)
    settings = FrameSettings(clips=True, clip_rate=12.5, clip_side=32)
    write_frames(plain_video(path, 50), group, settings)
    assert shown(group) == list(range(0, 50, 2))
    assert group["clip"].shape == (25, 32, 64, 3)
    assert group["clip"].attrs["rate"] == 12.5


def test_a_change_of_size_within_a_video_is_evened_out(group):
    writer = ClipWriter(group, CLIPS)
    for number in range(40):
        size = (64, 128) if number < 20 else (32, 64)
        writer.add(Frame(lambda n=number, s=size: numbered_picture(n, *s), number / 25))
    writer.close()
    assert group["clip"].shape == (40, 64, 128, 3)
    assert shown(group) == list(range(40))


def test_snippets_are_the_same_and_the_video_is_decoded_once(tmp_path, monkeypatch):
    path = encode(tmp_path / "v.mp4", 100, rate=20)
    passes = []

    def count(video, **limits):
        passes.append(video)
        return read_frames(video, **limits)

    monkeypatch.setattr("actionspan.video.snippets.read_frames", count)
    without = FrameSettings(snippet_frames=16, stack=2)
    with h5py.File(tmp_path / "out.h5", "w") as file:
        for name, settings in (("with", CLIPS), ("without", without)):
            write_frames(plain_video(path, 100, 20), file.create_group(name), settings)
        assert passes == [path, path]
        assert set(file["with"]) - set(file["without"]) == {"clip", "clip_row"}
        for key in file["without"]:
            np.testing.assert_array_equal(file["with"][key], file["without"][key])
        assert dict(file["with"].attrs) == dict(file["without"].attrs)
