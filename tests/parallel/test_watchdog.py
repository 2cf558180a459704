"""The watchdog of one rank, among ranks that are played."""

import time

import pytest

from actionspan.parallel.watchdog import STALLED, Watchdog
from worlds.waiting import eventually


class Done:
    def Test(self):  # noqa: N802
        return True


class Wire:
    """Rank 0 of three, which hears from `speakers` and remembers whom it told."""

    def __init__(self, speakers):
        self.speakers, self.told, self.ended = list(speakers), [], []

    def Get_rank(self):
        return 0

    def Get_size(self):  # noqa: N802
        return 3

    def Iprobe(self, source, tag, status):  # noqa: N802
        if not self.speakers:
            return False
        status.source = self.speakers[0]
        return True

    def Recv(self, buffer, source, tag):  # noqa: N802
        self.speakers.remove(source)

    def Isend(self, buffer, dest, tag):  # noqa: N802
        self.told.append(dest)
        return Done()

    def Abort(self, status):  # noqa: N802
        self.ended.append(status)

    def Free(self):  # noqa: N802
        pass


@pytest.fixture
def watched():
    """A wire and the watchdog on it, by the ranks that speak and the seconds of a deadline."""
    watchdogs = []

    def watched(speakers, seconds):
        wire = Wire(speakers)
        watchdogs.append(Watchdog(wire, seconds=seconds))
        return wire, watchdogs[0]

    yield watched
    watchdogs[0].close()


def test_a_rank_that_came_late_tells_as_soon_as_another_tells(watched):
    wire, watchdog = watched([2], 100)
    with watchdog.waiting("bucket 1"):
        eventually(lambda: set(wire.told) == {1, 2})
    assert not wire.ended


def test_a_rank_that_does_not_wait_tells_nobody(watched):
    wire, _ = watched([2], 1)
    eventually(lambda: not wire.speakers)
    time.sleep(0.3)
    assert not wire.told


def test_the_silent_rank_is_the_one_that_is_named(watched, capsys):
    wire, watchdog = watched([2], 0.5)
    with watchdog.waiting("bucket 3 of 4 in step 7"):
        eventually(lambda: wire.ended)
    assert wire.ended[0] == STALLED
    line = "rank 1 did not come to the exchange of bucket 3 of 4 in step 7"
    assert line in capsys.readouterr().err


def test_a_block_may_have_more_patience_than_others(watched):
    wire, watchdog = watched([], 0.2)
    with watchdog.waiting("the models", patience=3.0):
        time.sleep(0.5)
        assert not wire.ended
        eventually(lambda: wire.ended)
    assert set(wire.ended) == {STALLED}
