"""Videos that tests of streams share, and what a stream of one gives that nothing disturbs."""

import pytest

from actionspan.video.decode import read_frames
from live.camera import jpegs
from live.fakes import run_stream
from video.numbered import encode


@pytest.fixture(scope="session")
def video(tmp_path_factory):
    """Ten seconds: 250 frames, 62 snippets."""
    return encode(tmp_path_factory.mktemp("video") / "v.mp4", 250)


@pytest.fixture(scope="session")
def film(video):
    """The frames of the video as JPEGs, for a camera."""
    return jpegs([frame.picture() for frame in read_frames(video)])


@pytest.fixture(scope="session")
def short(tmp_path_factory):
    """Two seconds: 50 frames, 12 snippets."""
    return encode(tmp_path_factory.mktemp("short") / "v.mp4", 50)


@pytest.fixture(scope="session")
def whole(video, tmp_path_factory):
    """The results of a stream that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    assert run_stream(video, folder)[:2] == ("finished", 10.0)
    return folder
