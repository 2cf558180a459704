"""Time stamps of live frames: wall clock, the source's own steps, always increasing."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.live.frames import LiveClock

SNIPPET = 8
RATE = 25.0
STEP = 1 / RATE


class Now:
    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


def test_without_stamps_of_its_own_a_frame_has_the_time_of_its_arrival():
    now = Now()
    clock = LiveClock(SNIPPET, now=now)
    stamps = []
    for step in (0, 0.04, 0.05, 0.0):
        now.at += step
        stamps.append(clock.stamp(None))
    assert stamps[:3] == pytest.approx([0, 0.04, 0.09])
    assert stamps[3] > stamps[2]


def test_a_burst_keeps_the_steps_of_the_source():
    now = Now()
    clock = LiveClock(SNIPPET, now=now)
    stamps = [clock.stamp(50.0)]
    now.at += 2.0  # the network held back 50 frames
    stamps += [clock.stamp(50.0 + 0.04 * n) for n in range(1, 51)]
    assert stamps == pytest.approx([0.04 * n for n in range(51)])


def test_a_connection_is_tied_to_the_wall_clock():
    now = Now()
    clock = LiveClock(SNIPPET, now=now)
    clock.stamp(7.0)
    now.at += 30
    clock.reconnected()
    assert clock.stamp(0.0) == pytest.approx(30.0)
    now.at += 1
    assert clock.stamp(0.04) == pytest.approx(30.04)


def test_frames_never_crowd_together_behind_a_burst():
    """What was said ahead of the wall clock is not waited for a millisecond a frame."""
    now = Now()
    clock = LiveClock(SNIPPET, now=now)
    clock.stamp(0.0)
    now.at += 0.1
    ahead = [clock.stamp(0.04 * n) for n in range(1, 51)][-1]  # two seconds at once
    now.at += 0.9
    clock.reconnected()
    stamps = [clock.stamp(100 + 0.04 * n) for n in range(10)]
    assert stamps[0] > ahead
    steps = [b - a for a, b in zip(stamps, stamps[1:], strict=False)]
    assert steps == pytest.approx([0.04] * 9, rel=0.011)


def test_a_clock_that_was_set_is_not_followed():
    now = Now()
    clock = LiveClock(SNIPPET, now=now)
    clock.stamp(100.0)
    now.at += 0.04
    assert clock.stamp(5000.0) == pytest.approx(0.04)
    now.at += 0.04
    assert clock.stamp(3.0) == pytest.approx(0.08)


def test_a_resumed_stream_goes_on_counting():
    now = Now()
    clock = LiveClock(SNIPPET, 60.0, now=now)
    now.at += 5
    assert clock.stamp(None) == pytest.approx(65.0)


@given(
    st.lists(
        st.tuples(st.floats(0, 20), st.none() | st.floats(-100, 100), st.booleans()), max_size=40
    )
)
def test_stamps_always_increase(steps):
    now, last = Now(), -1.0
    clock = LiveClock(SNIPPET, now=now)
    for step, own, again in steps:
        now.at += step
        if again:
            clock.reconnected()
        stamp = clock.stamp(own)
        assert stamp is None or stamp > last
        last = last if stamp is None else stamp


class Line:
    """A camera, simulated: when its frames are taken, and when they come.

    Args:
        seconds: How long it is watched.
        pauses: Begin and length of the times in which it takes no pictures.
        holds: Begin and length of the times in which the network keeps what is sent.
        speed: How much faster than it was taken comes what was kept.
    """

    def __init__(self, seconds, pauses=(), holds=(), speed=20.0):
        taken = [n * STEP for n in range(round(seconds * RATE))]
        self.taken = [at for at in taken if not any(a < at < a + long for a, long in pauses)]
        self.came, before = [], -1.0
        for at in self.taken:
            due = max([at, *(a + long for a, long in holds if a < at < a + long)])
            before = max(due, before + STEP / speed)
            self.came.append(before)

    def stamps(self, *, own=None):
        """Return what a clock says of each frame, and how many holes it has counted."""
        now, first = Now(), 0
        begun = now.at
        clock = LiveClock(SNIPPET, now=now)
        for number, came in enumerate(self.came):
            now.at = begun + came
            stamp = clock.stamp(None if own is None else own(number, self.taken[number]))
            yield self.taken[number], stamp, clock.holes
            first = first or stamp


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


@given(pauses=spells(2.0, 0.0, 9.0), holds=spells(2.0, 0.0, 9.0), speed=st.floats(1.5, 100))
def test_times_of_frames_with_stamps_are_those_of_the_source(pauses, holds, speed):
    line = Line(30, pauses, holds, speed)
    check(line.stamps(own=lambda _, taken: 1e5 + taken), 0.0)


@given(holds=spells(2.0, 0.0, 9.0), without=st.sets(st.integers(50, 749), max_size=100))
def test_a_frame_that_lacks_its_stamp_goes_on_from_the_last_one(holds, without):
    def own(number, taken):
        return None if number in without else 1e5 + taken

    check(Line(30, [], holds).stamps(own=own), 1e-9)


@given(holds=spells(2.0, 0.0, 15.0), speed=st.floats(1.5, 100))
def test_frames_without_stamps_are_never_said_later_than_by_a_snippet(holds, speed):
    """What was held back longer than a snippet is passed over, and the hole is said."""
    found = list(Line(30, [], holds, speed).stamps())
    check(found, SNIPPET * STEP)
    passed = [taken for taken, stamp, _ in found if stamp is None]
    # until what was kept and what is taken meanwhile has come
    until = [long * speed / (speed - 1) for _, long in holds if long > (SNIPPET - 1) * STEP]
    assert len(passed) <= sum(RATE * seconds + SNIPPET for seconds in until)


@given(pauses=spells(2.0, 0.5, 15.0))
def test_behind_a_pause_a_source_without_stamps_is_seen_after_a_snippet(pauses):
    found = list(Line(30, pauses).stamps())
    check(found, 1e-9)
    assert sum(stamp is None for _, stamp, _ in found) <= SNIPPET * len(pauses)


def test_a_camera_that_takes_fewer_pictures_at_night_is_followed():
    """One a second in place of 25: some seconds of holes, then none."""
    now = Now()
    clock = LiveClock(SNIPPET, now=now)
    for _ in range(100):
        now.at += STEP
        clock.stamp(None)
    seen = []
    for _ in range(100):
        now.at += 1.0
        seen.append((clock.stamp(None), clock.holes))
    assert seen[50][1] == seen[-1][1]
    assert None not in [stamp for stamp, _ in seen[50:]]


def test_a_source_whose_stamps_end_is_timed_by_arrival():
    now = Now()
    clock = LiveClock(SNIPPET, now=now)
    for number in range(50):
        now.at += STEP
        clock.stamp(number * STEP)
    now.at += 5.0
    stamps = []
    for _ in range(200):
        now.at += STEP
        stamps.append(clock.stamp(None))
    assert stamps[-1] == pytest.approx(now.at - 1000.0 - STEP)


def test_a_clock_that_runs_fast_is_held_to_the_wall_clock():
    """It gains 5 seconds in 1,000."""
    now = Now()
    clock = LiveClock(SNIPPET, now=now)
    for number in range(25_000):
        now.at = 1000.0 + number * STEP
        stamp = clock.stamp(1.005 * number * STEP)
        assert stamp <= number * STEP + 0.01
    assert clock.holes == 0
