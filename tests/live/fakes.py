"""Streams of a player without networks, watched while they play, and what always holds of them.

Its features are brightness, and its proposals follow a rule that can be checked.
"""

import io
import json
import re
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

from actionspan.errors import InputError
from actionspan.live.learning import Actionness
from actionspan.live.play import Player, play
from actionspan.live.proposing import OnlineProposal, Update
from actionspan.live.run import Ended
from actionspan.live.settings import StreamSettings, parse_source
from actionspan.live.sink import ACTIONNESS, CHAPTERS, EVENTS, PROPOSALS
from actionspan.video.settings import FrameSettings
from worlds.waiting import eventually

CUTTING = FrameSettings(snippet_frames=4, stack=1, short_side=32)
LOOK_AHEAD = 2
EVERY = 5  # snippets between two proposals
FILES = (ACTIONNESS, *PROPOSALS, CHAPTERS)  # the same in each run; events have latencies
_LONG = 1.0  # seconds: more than a snippet of any camera here, however busy the machine is
_CUE = r"(\d{2,}):(\d\d):(\d\d)\.(\d{3})"  # a time of WebVTT


class Passing(nn.Module):
    """A stage that takes `seconds` for a snippet and changes nothing."""

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__()
        self.seconds = seconds

    def forward(self, message: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        time.sleep(self.seconds)
        return message[0] + self.seconds, *self.work(message)

    def work(self, message: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return tuple(tensor + 0 for tensor in message[1:])


class Brightness(Passing):
    """A stage whose features are the brightness of the picture."""

    def work(self, message: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        _, _, rgb, gray = message
        motion = (gray[1:].float() - gray[:-1].float()).abs().mean().reshape(1) / 255
        return torch.cat([motion, motion]), rgb.float().mean(dim=(0, 1)) / 255, motion


class FakeProposer:
    """Knows brightness two snippets later, and proposes the last second at every fifth snippet."""

    learner = zones = None

    def __init__(self) -> None:
        self.waiting: list[tuple[int, float, float]] = []
        self.count = 0
        self.gaps = 0

    def add(
        self, features: Mapping[str, Any], seconds: float, motion: Mapping[str, float]
    ) -> Update:
        self.waiting.append((self.count, seconds, float(features["rgb"].mean())))
        self.count += 1
        return self._emitted(LOOK_AHEAD)

    def gap(self) -> Update:
        self.gaps += 1
        return self._emitted(0)

    def finish(self, duration_seconds: float) -> Update:
        update = self._emitted(0)
        update.proposals.append(OnlineProposal(0.0, duration_seconds, 0.125))
        return update

    def state_dict(self) -> dict[str, Any]:
        return {"waiting": list(self.waiting), "count": self.count}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.waiting = [tuple(each) for each in state["waiting"]]
        self.count = state["count"]

    def _emitted(self, kept: int) -> Update:
        update = Update()
        while len(self.waiting) > kept:
            number, seconds, value = self.waiting.pop(0)
            update.actionness.append(Actionness(number, seconds, value / 2, value, 1 - value))
            if number % EVERY == EVERY - 1:
                update.proposals.append(OnlineProposal(max(0.0, seconds - 1), seconds, value))
        return update


def player(seconds: float = 0.0, chain: nn.Sequential | None = None, made_of: str = "fake") -> Any:
    """Return a player whose two stages take so long together for each snippet."""
    return Player(
        frames=CUTTING,
        chain=chain or nn.Sequential(Brightness(seconds / 2), Passing(seconds / 2)),
        proposer=FakeProposer(),
        made_of=made_of,
        file=Path("fake"),
    )


def run_stream(
    source: Path | str, out: Path, *, made: Any = None, seconds: float = 0.0, **words: Any
) -> Ended:
    """Play a source with a player of ours; `words` are those of `play`, and settings."""
    own = words.keys() & {"resume", "echo", "stopping", "on_proposal"}
    given = {name: words.pop(name) for name in own}
    settings = StreamSettings(**{"executor": "sequential"} | words)
    return play(parse_source(str(source)), made or player(seconds), settings, out, **given)


def run_until(source: Path, out: Path, limit: float, **words: Any) -> None:
    stopping = threading.Event()

    class Stopper(io.StringIO):
        def write(self, line: str) -> int:
            if line.startswith("{") and json.loads(line).get("seconds", 0) > limit:
                stopping.set()
            return len(line)

    ended = run_stream(source, out, stopping=stopping, echo=Stopper(), **words)
    assert ended.reason == events(out)[-1]["reason"] == "interrupted"


def events(out, kind=None):
    path = out / EVENTS
    found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [event for event in found if kind in (None, event["event"])]


def seen(out):
    return len(events(out, "actionness"))


def assert_same(out, whole):
    """Both streams wrote the same, latencies aside."""
    for name in FILES:
        assert (out / name).read_bytes() == (whole / name).read_bytes(), name
    first, second = ([e | {"latency_ms": 0} for e in events(each)] for each in (out, whole))
    assert first == second


def assert_valid(out):
    assert (out / EVENTS).read_text().endswith("\n")
    cues(out)
    results = json.loads((out / PROPOSALS[0]).read_text())["results"]
    assert sum(map(len, results.values())) == len(events(out, "proposal"))


def cues(out):
    """Return the chapters: start and end in seconds, title. Anything odd raises."""
    text = (out / CHAPTERS).read_text()
    head, *blocks = text.rstrip("\n").split("\n\n")
    assert head == "WEBVTT", text
    assert text.endswith("\n")
    found = []
    for block in blocks:
        times, title = block.split("\n")
        assert title
        assert "-->" not in title
        assert re.fullmatch(f"{_CUE} --> {_CUE}", times), block
        parts = [list(map(int, cue)) for cue in re.findall(_CUE, times)]
        start, end = (3600 * h + 60 * m + s + ms / 1000 for h, m, s, ms in parts)
        assert start < end
        assert not found or found[-1][1] <= start, "chapters overlap"
        found.append((start, end, title))
    return found


def see_more(out, count=5):
    wanted = seen(out) + count
    eventually(lambda: seen(out) > wanted)


@contextmanager
def streaming(url, out, **settings) -> Iterator[list[Any]]:
    """Stream an address in a thread; stop it at the end of the block; check what always holds."""
    stopping, ended = threading.Event(), []

    def work():
        try:
            ended.append(run_stream(url, out, stopping=stopping, **settings))
        except InputError as error:
            ended.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        see_more(out, 0)
        yield ended
    finally:
        stopping.set()
        thread.join(20)
    assert not thread.is_alive()
    times = [event["seconds"] for event in events(out, "actionness")]
    assert times == sorted(set(times)), "time stamps increase"
    gaps = events(out, "gap")
    for before, after in pairwise(times):
        said = any(gap["from"] <= before + 1e-5 and after <= gap["to"] + 1e-5 for gap in gaps)
        assert said or after - before < _LONG, "a hole without a gap"
        assert not any(gap["from"] + 1e-5 < after < gap["to"] - 1e-5 for gap in gaps)
    end, numbers = events(out)[-1], [event["snippet"] for event in events(out, "actionness")]
    assert end["dropped"] == sum(gap["dropped"] for gap in gaps)
    assert end["snippets"] == len(times)
    at_end = sum(gap["dropped"] for gap in gaps if gap["from"] >= times[-1] - 1e-5)
    assert end["dropped"] == numbers[-1] + 1 - len(numbers) + at_end


if __name__ == "__main__":  # a process of its own, which tests kill or interrupt
    from actionspan.cli import main

    with patch.object(Player, "load", lambda model, *_: player(float(str(model)))):
        sys.exit(main(sys.argv[1:]))
