"""Time stamps of live frames: wall clock, the source's own steps, always increasing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.live.clock import LiveClock


class Now:
    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


def test_without_stamps_of_its_own_a_frame_has_the_time_of_its_arrival():
    now = Now()
    clock = LiveClock(now=now)
    stamps = []
    for step in (0, 0.04, 0.05, 0.0):
        now.at += step
        stamps.append(clock.stamp(None))
    assert stamps[:3] == pytest.approx([0, 0.04, 0.09])
    assert stamps[3] > stamps[2]


def test_a_burst_keeps_the_steps_of_the_source():
    now = Now()
    clock = LiveClock(now=now)
    stamps = [clock.stamp(50.0)]
    now.at += 2.0  # the network held back 50 frames
    stamps += [clock.stamp(50.0 + 0.04 * n) for n in range(1, 51)]
    assert stamps == pytest.approx([0.04 * n for n in range(51)])


def test_a_connection_is_tied_to_the_wall_clock():
    now = Now()
    clock = LiveClock(now=now)
    clock.stamp(7.0)
    now.at += 30
    clock.reconnected()
    assert clock.stamp(0.0) == pytest.approx(30.0)
    now.at += 1
    assert clock.stamp(0.04) == pytest.approx(30.04)


def test_frames_never_crowd_together_behind_a_burst():
    """What was said ahead of the wall clock is not waited for a millisecond a frame."""
    now = Now()
    clock = LiveClock(now=now)
    clock.stamp(0.0)
    now.at += 0.1
    ahead = [clock.stamp(0.04 * n) for n in range(1, 51)][-1]  # two seconds at once
    now.at += 0.9
    clock.reconnected()
    stamps = [clock.stamp(100 + 0.04 * n) for n in range(10)]
    assert stamps[0] > ahead
    steps = [b - a for a, b in zip(stamps, stamps[1:], strict=False)]
    assert steps == pytest.approx([0.04] * 9)


def test_a_clock_that_was_set_is_not_followed():
    now = Now()
    clock = LiveClock(now=now)
    clock.stamp(100.0)
    now.at += 0.04
    assert clock.stamp(5000.0) == pytest.approx(0.04)
    now.at += 0.04
    assert clock.stamp(3.0) == pytest.approx(0.08)


def test_a_resumed_stream_goes_on_counting():
    now = Now()
    clock = LiveClock(60.0, now=now)
    now.at += 5
    assert clock.stamp(None) == pytest.approx(65.0)


@given(
    st.lists(
        st.tuples(st.floats(0, 20), st.none() | st.floats(-100, 100), st.booleans()), max_size=40
    )
)
def test_stamps_always_increase(steps):
    now, last = Now(), -1.0
    clock = LiveClock(now=now)
    for step, own, again in steps:
        now.at += step
        if again:
            clock.reconnected()
        stamp = clock.stamp(own)
        assert stamp > last
        last = stamp
