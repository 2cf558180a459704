"""Time stamps of live frames: wall clock, the source's own steps, always increasing."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from actionspan.live.clock import LiveClock

SNIPPET = 8
RATE = 25.0
STEP = 1 / RATE


class Watch:
    """A clock of a stream, and the time by which it goes."""

    def __init__(self, elapsed=None):
        self.at = 1000.0
        self.clock = LiveClock(SNIPPET, elapsed, now=lambda: self.at)

    def stamp(self, own=None, after=0.0):
        """Return the time of a frame that comes so many seconds later."""
        self.at += after
        return self.clock.stamp(own)


def test_a_connection_is_tied_to_the_wall_clock_and_a_resumed_stream_goes_on_counting():
    watch = Watch(60.0)
    assert watch.stamp(7.0, after=5.0) == pytest.approx(65.0)
    watch.clock.reconnected()
    assert watch.stamp(0.0, after=30.0) == pytest.approx(95.0)
    assert watch.stamp(0.04, after=1.0) == pytest.approx(95.04)


def test_frames_never_crowd_together_behind_a_burst():
    """What was said ahead of the wall clock is not waited for a millisecond a frame."""
    watch = Watch()
    watch.stamp(0.0)
    watch.at += 0.1
    ahead = [watch.stamp(0.04 * n) for n in range(1, 51)][-1]  # two seconds at once
    watch.at += 0.9
    watch.clock.reconnected()
    stamps = [watch.stamp(100 + 0.04 * n) for n in range(10)]
    assert stamps[0] > ahead
    assert np.diff(stamps) == pytest.approx([0.04] * 9, rel=0.011)


def test_a_clock_that_was_set_is_not_followed():
    watch = Watch()
    watch.stamp(100.0)
    assert watch.stamp(5000.0, after=0.04) == pytest.approx(0.04)
    assert watch.stamp(3.0, after=0.04) == pytest.approx(0.08)


@given(
    st.lists(
        st.tuples(st.floats(0, 20), st.none() | st.floats(-100, 100), st.booleans()), max_size=40
    )
)
def test_stamps_always_increase(steps):
    watch, last = Watch(), -1.0
    for step, own, again in steps:
        if again:
            watch.clock.reconnected()
        stamp = watch.stamp(own, after=step)
        assert stamp is None or stamp > last
        last = last if stamp is None else stamp


def stamped(pauses=(), holds=(), speed=20.0, own=None):
    """Yield of each frame in half a minute when it was taken, its stamp, and holes so far.

    A camera takes no pictures in `pauses`; a network keeps what is sent in `holds`, and delivers it
    so much faster than it was taken. Both are begins and lengths.
    """
    watch, before = Watch(), -1.0
    begun = watch.at
    taken = [n * STEP for n in range(round(30 * RATE))]
    taken = [at for at in taken if not any(a < at < a + long for a, long in pauses)]
    for number, at in enumerate(taken):
        due = max([at, *(a + long for a, long in holds if a < at < a + long)])
        before = max(due, before + STEP / speed)
        watch.at = begun + before
        stamp = watch.stamp(None if own is None else own(number, at))
        yield at, stamp, watch.clock.holes


def spells(apart, least, most):
    """Draw begins and lengths of spells in half a minute, each so many seconds behind the last."""

    def placed(drawn):
        found, at = [], 3.0
        for wait, long in drawn:
            at += wait + apart
            found.append((at, long))
            at += long
        return found

    each = st.tuples(st.floats(0, 3), st.floats(least, most))
    return st.lists(each, max_size=2).map(placed)


def check(found, longest_error):
    """Times increase, are right, and no hole is kept quiet."""
    given_ = [each for each in found if each[1] is not None]
    for taken, stamp, _ in given_:
        assert -1e-6 <= stamp - taken <= longest_error + 1e-6
    for (taken, stamp, holes), (next_taken, next_stamp, next_holes) in pairwise(given_):
        assert next_stamp > stamp
        step = next_stamp - stamp
        if abs(step - SNIPPET * STEP) > 1e-6:
            assert next_holes - holes == (step > SNIPPET * STEP)
        if next_taken - taken > SNIPPET * STEP + longest_error + 1e-6:
            assert next_holes > holes


@given(
    pauses=spells(2.0, 0.0, 9.0),
    holds=spells(2.0, 0.0, 9.0),
    speed=st.floats(1.5, 100),
    without=st.sets(st.integers(50, 749), max_size=100),
)
def test_times_of_frames_with_stamps_are_those_of_the_source(pauses, holds, speed, without):
    """A frame that lacks its stamp goes on from the last one."""

    check(stamped(pauses, holds, speed, lambda _, taken: 1e5 + taken), 1e-9)
    lacking = {"own": lambda number, taken: None if number in without else 1e5 + taken}
    check(stamped((), holds, **lacking), 1e-9)


@example(holds=[(5.0, 0.96875), (7.96875, 1.0)], speed=1.5)  # a hole just before it is in time
@given(holds=spells(2.0, 0.0, 15.0), speed=st.floats(1.5, 100))
def test_frames_without_stamps_are_never_said_later_than_by_a_snippet(holds, speed):
    """What was held back longer than a snippet is passed over, and the hole is said."""
    found = list(stamped((), holds, speed))
    check(found, SNIPPET * STEP)
    passed = [taken for taken, stamp, _ in found if stamp is None]
    # until what was kept and what is taken meanwhile has come
    until = [long * speed / (speed - 1) for _, long in holds if long > (SNIPPET - 1) * STEP]
    assert len(passed) <= sum(RATE * seconds + SNIPPET for seconds in until)


@given(pauses=spells(2.0, 0.5, 15.0))
def test_behind_a_pause_a_source_without_stamps_is_seen_after_a_snippet(pauses):
    found = list(stamped(pauses))
    check(found, 1e-9)
    assert sum(stamp is None for _, stamp, _ in found) <= SNIPPET * len(pauses)


def test_a_camera_that_takes_fewer_pictures_at_night_is_followed():
    """One a second in place of 25: some seconds of holes, then none."""
    watch = Watch()
    for _ in range(100):
        watch.stamp(after=STEP)
    seen = [(watch.stamp(after=1.0), watch.clock.holes) for _ in range(100)]
    assert seen[50][1] == seen[-1][1]
    assert None not in [stamp for stamp, _ in seen[50:]]


def test_a_source_whose_stamps_end_is_timed_by_arrival():
    watch = Watch()
    for number in range(50):
        watch.stamp(number * STEP, after=STEP)
    watch.at += 5.0
    stamps = [watch.stamp(after=STEP) for _ in range(200)]
    assert stamps[-1] == pytest.approx(watch.at - 1000.0 - STEP)


def test_a_clock_that_runs_fast_is_held_to_the_wall_clock():
    """It gains 5 seconds in 1,000."""
    watch = Watch()
    for number in range(25_000):
        watch.at = 1000.0 + number * STEP
        assert watch.stamp(1.005 * number * STEP) <= number * STEP + 0.01
    assert watch.clock.holes == 0
