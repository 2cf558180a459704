"""The queue between reading and work: bounded, and every snippet is taken or in a gap."""

import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.errors import InputError
from actionspan.live.reading import Arrived, Gap, HandOver
from actionspan.video.snippets import Snippet


def arrived(number: int, gap: Gap | None = None) -> Arrived:
    picture = np.zeros((2, 2, 3), np.uint8)
    snippet = Snippet(picture, picture[None, ..., 0], float(number))
    after = number - 1.0 if number else None
    return Arrived(
        number=number, snippet=snippet, after=after, centre_arrived=0.0, arrived=0.0, gap=gap
    )


@given(room=st.integers(1, 6), plan=st.lists(st.booleans(), max_size=80))
def test_by_newest_nobody_waits_and_gaps_sum_to_the_dropped(room, plan):
    queue = HandOver(room, "newest")
    taken, dropped, put = [], 0, 0
    for puts in plan:
        if puts:
            assert queue.put(arrived(put))
            put += 1
        elif (found := queue.take(0)) is not None:
            taken.append(found)
        assert len(queue) <= room
    queue.close()
    while (found := queue.take(0)) is not None:
        taken.append(found)
    expected = 0  # the next number if nothing was dropped
    for each in taken:
        missing = each.number - expected
        assert (each.gap.dropped if each.gap else 0) == missing
        if each.gap:
            assert each.gap.start == max(expected - 1, 0)
            assert each.gap.end == each.snippet.seconds
            assert each.gap.reason == "slow"
        dropped += missing
        expected = each.number + 1
    assert queue.dropped == dropped
    assert len(taken) + dropped == put
    assert queue.ended


def test_the_newest_is_kept_and_what_waited_goes_at_once():
    queue = HandOver(3, "newest")
    for number in range(8):
        queue.put(arrived(number))
    found = [queue.take(0) for _ in range(2)]
    assert [each.number for each in found] == [6, 7]
    assert found[0].gap == Gap(start=0.0, end=6.0, dropped=6, reason="slow")
    assert found[1].gap is None
    assert queue.take(0) is None


def test_a_lost_connection_among_the_dropped_stays_known():
    queue = HandOver(2, "newest")
    queue.put(arrived(0))
    queue.put(arrived(1))
    lost = Gap(start=1.0, end=5.0, dropped=0, reason="lost")
    queue.put(arrived(5, lost))  # drops 0 and 1
    queue.put(arrived(6))
    queue.put(arrived(7))  # drops 5 and 6
    assert queue.take(0).gap == Gap(start=0.0, end=7.0, dropped=4, reason="lost")


def test_by_block_the_reader_waits_and_nothing_is_lost():
    queue, sizes = HandOver(2, "block"), []

    def put():
        for number in range(30):
            queue.put(arrived(number))
        queue.close()

    thread = threading.Thread(target=put)
    thread.start()
    numbers = []
    while not queue.ended:
        sizes.append(len(queue))
        found = queue.take(1.0)
        if found is not None:
            numbers.append(found.number)
            assert found.gap is None
    thread.join()
    assert numbers == list(range(30))
    assert max(sizes) <= 2
    assert queue.dropped == 0


def test_closing_ends_the_wait_of_both_sides():
    queue = HandOver(1, "block")
    queue.put(arrived(0))
    results = []
    thread = threading.Thread(target=lambda: results.append(queue.put(arrived(1))))
    thread.start()
    time.sleep(0.05)
    queue.close()
    thread.join(60)
    assert results == [False]
    assert queue.take(0).number == 0
    assert queue.ended
    assert queue.take(5.0) is None, "at once"


def test_an_error_comes_after_what_waits():
    queue = HandOver(4, "block")
    queue.put(arrived(0))
    queue.close(InputError("the cable is cut"))
    assert queue.take(0).number == 0
    assert not queue.ended
    with pytest.raises(InputError, match="cable"):
        queue.take(0)
    assert queue.ended


def test_what_waits_at_the_end_leaves_a_gap():
    queue = HandOver(4, "newest")
    assert queue.clear() is None
    for number in range(3, 6):
        queue.put(arrived(number))
    assert queue.clear() == Gap(start=2.0, end=5.0, dropped=3, reason="slow")
    assert len(queue) == 0
