"""Reading a file: the workflow's snippets, at its pace, from where it stopped."""

import threading
import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.errors import InputError
from actionspan.live import frames
from actionspan.live.connection import Seen
from actionspan.live.frames import FileFrames
from actionspan.live.reading import Begin, HandOver, Reader
from actionspan.live.settings import StreamSettings, parse_source
from actionspan.video.decode import read_frames
from actionspan.video.snippets import snippets
from live.fakes import CUTTING
from video.numbered import encode


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    return encode(tmp_path_factory.mktemp("video") / "v.mp4", 50)


def reader_of(path, begin=None, room=100, **settings):
    queue = HandOver(room, "block")
    frames = FileFrames(parse_source(str(path)))
    return Reader(frames, CUTTING, StreamSettings(**settings), queue, begin), queue


def taken(queue):
    found = []
    while not queue.ended:
        arrived = queue.take(5.0)
        if arrived is not None:
            found.append(arrived)
    return found


def test_a_files_snippets_are_the_workflows(video):
    reader, queue = reader_of(video)
    reader.start()
    found = taken(queue)
    expected = list(snippets(video, CUTTING))
    assert len(found) == len(expected) == 12
    for number, (arrived, snippet) in enumerate(zip(found, expected, strict=True)):
        assert arrived.number == number
        assert arrived.snippet.seconds == snippet.seconds
        assert np.array_equal(arrived.snippet.rgb, snippet.rgb)
        assert np.array_equal(arrived.snippet.gray, snippet.gray)
        assert arrived.centre_arrived <= arrived.arrived
        assert arrived.after == (expected[number - 1].seconds if number else None)
        assert arrived.gap is None
    assert reader.frames == 50
    assert not reader.lost
    assert not reader.reached_limit


def test_reading_goes_on_where_it_stopped(video):
    reader, queue = reader_of(video, Begin(snippet=5, seconds=0.72))
    reader.start()
    found = taken(queue)
    assert [arrived.number for arrived in found] == list(range(5, 12))
    assert found[0].after == 0.72
    assert reader.frames == 50


def test_a_file_plays_at_its_own_rate(video):
    reader, queue = reader_of(video, rate="real")
    begun = time.monotonic()
    reader.start()
    found = taken(queue)
    for arrived in found:
        assert arrived.centre_arrived - begun >= arrived.snippet.seconds - 0.01
    assert time.monotonic() - begun >= 49 / 25


def test_what_an_earlier_run_saw_is_not_played_again(tmp_path):
    """Of ten seconds, the last one and a half."""
    video = encode(tmp_path / "v.mp4", 50, rate=5)
    reader, queue = reader_of(video, Begin(snippet=11, seconds=8.4), rate="real")
    begun = time.monotonic()
    reader.start()
    assert [arrived.number for arrived in taken(queue)] == [11]
    assert time.monotonic() - begun < 8


def test_the_duration_ends_reading(video):
    reader, queue = reader_of(video, duration=1.0)
    reader.start()
    found = taken(queue)
    assert reader.reached_limit
    assert reader.frames == 25
    assert found[-1].snippet.seconds < 1.0


def test_stopping_ends_a_reader_that_waits(video):
    reader, _ = reader_of(video, room=1)
    before = threading.active_count()
    reader.start()
    time.sleep(0.2)
    reader.stop()
    assert threading.active_count() == before


class Download:
    """A file on a web server, whose frames have these time stamps."""

    recorded = True

    def __init__(self, stamps):
        self.stamps = stamps

    def frames(self):
        for own in self.stamps:
            yield Seen(lambda: np.zeros((4, 4, 3), np.uint8), own)

    def close(self):
        pass


@pytest.mark.parametrize(
    ("stamps", "expected"),
    [
        ([7.0, 7.5, 8.5], [0, 0.5, 1.5]),
        ([None, None, None], [0, 0.04, 0.08]),
        ([100.0, None, 100.5, None], [0, 0.04, 0.5, 0.54]),
        ([None, 100.0, 100.5], [0, 0.04, 0.54]),
    ],
)
def test_a_downloaded_frame_without_a_stamp_goes_on_from_the_last_one(stamps, expected):
    (stretch,) = FileFrames(parse_source("http://a/b.mp4"), Download(stamps)).stretches(None)
    assert [frame.seconds for frame in stretch] == pytest.approx(expected)


@given(st.lists(st.none() | st.floats(-1e6, 1e6), max_size=30))
def test_times_of_a_download_always_increase(stamps):
    (stretch,) = FileFrames(parse_source("http://a/b.mp4"), Download(stamps)).stretches(None)
    times = [frame.seconds for frame in stretch]
    assert all(later > time for time, later in pairwise(times))


def test_what_breaks_off_is_said_after_what_came_before(video, monkeypatch):
    def broken(path):
        for number, frame in enumerate(read_frames(path)):
            if number == 20:
                raise InputError(f"{path}: decoding stopped")
            yield frame

    monkeypatch.setattr(frames, "read_frames", broken)
    reader, queue = reader_of(video)
    reader.start()
    for number in range(5):
        assert queue.take(5.0).number == number
    with pytest.raises(InputError, match="decoding stopped"):
        queue.take(5.0)
    assert queue.ended


@pytest.mark.parametrize("place", ["decoding", "picture"])
def test_an_error_that_nobody_foresaw_is_a_line_after_what_came_before(video, monkeypatch, place):
    def fails() -> None:
        raise ZeroDivisionError("a bug")

    def faulty(path, **named):
        for number, frame in enumerate(read_frames(path, **named)):
            if number == 30 and place == "decoding":
                fails()
            yield frame._replace(picture=fails) if number >= 30 else frame

    monkeypatch.setattr(frames, "read_frames", faulty)
    reader, queue = reader_of(video)
    reader.start()
    found = []

    def take_all() -> None:
        while not queue.ended:
            found.append(queue.take(5.0))

    with pytest.raises(InputError, match=rf"^{video}: ZeroDivisionError: a bug"):
        take_all()
    whole = list(snippets(video, CUTTING))
    assert 0 < len(found) < len(whole)
    assert found[-1].snippet.seconds == whole[len(found) - 1].seconds
