"""A stream in a thread, watched while it plays; what always holds is checked at its end."""

import json
import threading
import time
from contextlib import contextmanager
from itertools import pairwise

from actionspan.errors import InputError
from actionspan.live.outputs import EVENTS
from live.fakes import FakeProposer, player, run_stream

_LONG = 1.0  # seconds: more than a snippet of any camera here, however busy the machine is


def events(folder, kind=None):
    found = [json.loads(line) for line in (folder / EVENTS).read_text().splitlines()]
    return [event for event in found if kind in (None, event["event"])]


def eventually(holds, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.02)


@contextmanager
def streaming(url, out, **settings):
    """Stream an address in a thread; stop it at the end of the block; check what always holds."""
    stopping, ended, made = threading.Event(), [], player(settings.pop("seconds", 0.0))

    def work():
        try:
            ended.append(run_stream(url, out, made=made, stopping=stopping, **settings))
        except InputError as error:
            ended.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        eventually(lambda: (out / EVENTS).exists() and events(out, "actionness"))
        yield ended
    finally:
        stopping.set()
        thread.join(20)
    assert not thread.is_alive()
    times = [event["seconds"] for event in events(out, "actionness")]
    assert times == sorted(set(times)), "time stamps increase"
    gaps = [(gap["from"], gap["to"]) for gap in events(out, "gap")]
    for before, after in pairwise(times):
        said = any(begin <= before + 1e-5 and after <= end + 1e-5 for begin, end in gaps)
        assert said or after - before < _LONG, "a hole without a gap"
    end = events(out)[-1]
    assert end["dropped"] == sum(gap["dropped"] for gap in events(out, "gap"))
    assert end["snippets"] == len(times)
    numbers = [event["snippet"] for event in events(out, "actionness")]
    assert end["dropped"] == numbers[-1] + 1 - len(numbers) + _after(out, numbers)
    assert isinstance(made.proposer, FakeProposer)


def _after(out, numbers):
    """Return how many snippets were dropped after the last one that was worked on."""
    gaps = events(out, "gap")
    last = events(out, "actionness")[-1]["seconds"]
    return sum(gap["dropped"] for gap in gaps if gap["from"] >= last - 1e-5)


def seen(out):
    return len(events(out, "actionness"))
