"""From frames to work: a file's snippets at its pace, and the queue that hands them over."""

import threading
import time
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.errors import InputError
from actionspan.live import source
from actionspan.live.connection import Seen
from actionspan.live.hand_over import Arrived, Gap, HandOver
from actionspan.live.settings import StreamSettings, parse_source
from actionspan.live.source import FileFrames, Reader
from actionspan.video.decode import read_frames
from actionspan.video.snippets import Snippet, snippets
from live.fakes import CUTTING
from video.numbered import encode


def reader_of(path, room=100, skip=0, before=None, **settings):
    queue = HandOver(room, "block")
    frames = FileFrames(parse_source(str(path)))
    chosen = StreamSettings(**settings)
    reader = Reader(frames, CUTTING, chosen, queue, skip=skip, before=before)
    reader.start()
    return reader, queue


def taken(queue, found):
    """Take all snippets, also where an error ends them."""
    while not queue.ended:
        arrived = queue.take(5.0)
        if arrived is not None:
            found.append(arrived)
    return found


def test_a_files_snippets_are_the_workflows(short):
    reader, queue = reader_of(short)
    found, expected = taken(queue, []), list(snippets(short, CUTTING))
    assert len(found) == len(expected) == 12
    before = None
    for number, (arrived, snippet) in enumerate(zip(found, expected, strict=True)):
        assert (arrived.number, arrived.after, arrived.gap) == (number, before, None)
        assert arrived.snippet.seconds == (before := snippet.seconds)
        assert np.array_equal(arrived.snippet.rgb, snippet.rgb)
        assert np.array_equal(arrived.snippet.gray, snippet.gray)
        assert arrived.centre_arrived <= arrived.arrived
    assert (reader.frames, reader.lost, reader.reached_limit) == (50, False, False)


def test_a_file_of_variable_rate_plays_at_its_time_stamps(tmp_path):
    stamps = [*range(0, 300, 20), *range(300, 1500, 200), *range(1500, 2000, 40)]
    video = encode(
        tmp_path / "v.mkv", len(stamps), rate=50, stamps=stamps, tick=Fraction(1, 1000), b_frames=0
    )
    begun = time.monotonic()
    found = taken(reader_of(video, rate="real")[1], [])
    assert time.monotonic() - begun >= stamps[-1] / 1000
    assert [round(1000 * each.snippet.seconds) for each in found] == stamps[2::4]
    assert all(each.centre_arrived - begun >= each.snippet.seconds - 0.01 for each in found)


def test_what_an_earlier_run_saw_is_not_played_again(tmp_path):
    """Of ten seconds, the last one and a half."""
    video = encode(tmp_path / "v.mp4", 50, rate=5)
    begun = time.monotonic()
    reader, queue = reader_of(video, skip=11, before=8.4, rate="real")
    assert [(arrived.number, arrived.after) for arrived in taken(queue, [])] == [(11, 8.4)]
    assert reader.frames == 50
    assert time.monotonic() - begun < 8


def test_stopping_ends_a_reader_that_waits(short):
    before = threading.active_count()
    reader, _ = reader_of(short, room=1)
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


def times_of(stamps):
    (stretch,) = FileFrames(parse_source("http://a/b.mp4"), Download(stamps)).stretches(None)
    return [frame.seconds for frame in stretch]


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
    assert times_of(stamps) == pytest.approx(expected)


@given(st.lists(st.none() | st.floats(-1e6, 1e6), max_size=30))
def test_times_of_a_download_always_increase(stamps):
    assert all(later > time for time, later in pairwise(times_of(stamps)))


@pytest.mark.parametrize("place", ["decoding", "picture"])
def test_an_error_that_nobody_foresaw_is_a_line_after_what_came_before(short, monkeypatch, place):
    def fails() -> None:
        raise ZeroDivisionError("a bug")

    def faulty(path, **named):
        for number, frame in enumerate(read_frames(path, **named)):
            if number == 30 and place == "decoding":
                fails()
            yield frame._replace(picture=fails) if number >= 30 else frame

    monkeypatch.setattr(source, "read_frames", faulty)
    _, queue = reader_of(short)
    found = []
    with pytest.raises(InputError, match=rf"^{short}: ZeroDivisionError: a bug"):
        taken(queue, found)
    whole = list(snippets(short, CUTTING))
    assert 0 < len(found) < len(whole)
    assert found[-1].snippet.seconds == whole[len(found) - 1].seconds


def arrived(number: int, gap: Gap | None = None) -> Arrived:
    picture = np.zeros((2, 2, 3), np.uint8)
    snippet = Snippet(picture, picture[None, ..., 0], float(number))
    after = number - 1.0 if number else None
    return Arrived(
        number=number, snippet=snippet, after=after, centre_arrived=0.0, arrived=0.0, gap=gap
    )


def queue_of(room, policy, *numbers):
    queue = HandOver(room, policy)
    for number in numbers:
        queue.put(arrived(number))
    return queue


@given(room=st.integers(1, 6), plan=st.lists(st.booleans(), max_size=80))
def test_by_newest_nobody_waits_and_what_waits_goes_at_once(room, plan):
    """As in a list that is emptied when it is full; the gap is before the next."""
    queue, waiting, dropped = HandOver(room, "newest"), [], []
    for number, puts in enumerate(plan):
        if puts:
            assert queue.put(arrived(number))
            if len(waiting) == room:
                dropped, waiting = dropped + waiting, []
            waiting.append(number)
        elif (found := queue.take(0)) is not None:
            assert found.number == waiting.pop(0)
            assert found.gap == gap_of(dropped, found.number)
            dropped = []
        assert len(queue) == len(waiting)
    cleared = queue.clear()
    assert cleared == (gap_of(dropped + waiting, waiting[-1]) if waiting else None)


def gap_of(dropped, end):
    if not dropped:
        return None
    start = max(dropped[0] - 1.0, 0.0)
    return Gap(start=start, end=float(end), dropped=len(dropped), reason="slow")


def test_a_lost_connection_among_the_dropped_stays_known():
    queue = queue_of(2, "newest", 0, 1)
    queue.put(arrived(5, Gap(start=1.0, end=5.0, dropped=0, reason="lost")))  # drops 0 and 1
    queue.put(arrived(6))
    queue.put(arrived(7))  # drops 5 and 6
    assert queue.take(0).gap == Gap(start=0.0, end=7.0, dropped=4, reason="lost")


def test_by_block_the_reader_waits_and_nothing_is_lost():
    queue, sizes, found = HandOver(2, "block"), [], []

    def put():
        for number in range(30):
            queue.put(arrived(number))
        queue.close()

    thread = threading.Thread(target=put)
    thread.start()
    while not queue.ended:
        sizes.append(len(queue))
        found.append(queue.take(1.0))
    thread.join()
    assert [(each.number, each.gap) for each in filter(None, found)] == [
        (number, None) for number in range(30)
    ]
    assert max(sizes) <= 2


def test_closing_ends_the_wait_of_both_sides():
    queue, results = queue_of(1, "block", 0), []
    thread = threading.Thread(target=lambda: results.append(queue.put(arrived(1))))
    thread.start()
    time.sleep(0.05)
    queue.close(InputError("the cable is cut"))
    thread.join(60)
    assert results == [False]
    assert queue.take(0).number == 0, "what waits comes before the error"
    assert not queue.ended
    with pytest.raises(InputError, match="cable"):
        queue.take(5.0)
    assert queue.ended
    assert queue.take(5.0) is None, "at once"
