"""Items made in a thread: their order, their errors, how far ahead, and that no thread is left."""

import subprocess
import sys
import threading
import time
from contextlib import closing

import pytest

from actionspan.jobs.prefetch import prefetched
from worlds.waiting import eventually


def threads() -> int:
    return sum(thread.name == "prefetched" for thread in threading.enumerate())


class Source:
    def __init__(self, count, error=None):
        self.count, self.error = count, error
        self.made, self.closed = 0, False

    def __iter__(self):
        try:
            for number in range(self.count):
                self.made += 1
                yield number
            if self.error:
                raise self.error
        finally:
            self.closed = True


@pytest.mark.parametrize("ahead", [1, 2, 7])
@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_all_items_come_in_their_order(count, ahead):
    source = Source(count)
    assert list(prefetched(iter(source), ahead)) == list(range(count))
    assert source.closed
    assert threads() == 0


def test_none_and_exceptions_are_items_like_others():
    items = [None, ValueError("an item"), (), StopIteration()]
    assert list(prefetched(iter(items))) == items


@pytest.mark.parametrize("ahead", [1, 3])
def test_the_thread_is_never_more_items_ahead_than_asked(ahead):
    source = Source(20)
    taken = 0
    for taken, _ in enumerate(prefetched(iter(source), ahead), start=1):
        eventually(lambda: source.made >= min(taken + ahead, 20))  # noqa: B023 - called at once
        time.sleep(0.002)
        assert source.made == min(taken + ahead, 20)
    assert taken == 20


def test_an_error_comes_where_its_item_would_have_come():
    items = prefetched(iter(Source(5, OSError("disk"))), 3)
    assert [next(items) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(OSError, match="disk"):
        next(items)
    assert threads() == 0


def test_a_loop_left_early_leaves_no_thread():
    source = Source(1000)
    for number in prefetched(iter(source)):
        if number == 3:
            break
    assert threads() == 0
    assert source.closed
    assert source.made <= 6
    source = Source(1000)
    with pytest.raises(RuntimeError), closing(prefetched(iter(source))) as items:  # noqa: PT012
        next(items)
        raise RuntimeError("the step failed")
    assert threads() == 0
    assert source.closed


def test_nothing_is_made_before_the_first_item_is_asked_for():
    source = Source(10)
    items = prefetched(iter(source))
    assert (source.made, threads()) == (0, 0)
    items.close()
    assert (source.made, threads()) == (0, 0)


def test_making_and_using_overlap():
    meeting = threading.Barrier(2, timeout=60)

    def source():
        yield 0
        for number in range(1, 20):
            meeting.wait()  # item n is in the making while the one before is in use
            yield number

    for number in prefetched(source(), 1):
        if number < 19:
            meeting.wait()


def test_ahead_of_nothing_is_refused():
    with pytest.raises(ValueError, match="ahead is 0: at least 1"):
        prefetched(iter([]), 0)


def test_ctrl_c_ends_a_program_that_waits_for_an_item():
    program = (
        "import signal, threading, time\n"
        # ignored by what a shell starts in the background, and by its children
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from actionspan.jobs.prefetch import prefetched\n"
        "def source():\n"
        "    yield 0\n"
        "    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)\n"
        "    time.sleep(0.3)\n"
        "    yield 1\n"
        "try:\n"
        "    for _ in prefetched(source()):\n"
        "        pass\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted,', threading.active_count(), 'thread')\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("interrupted, 1 thread\n", "")
