"""A player without networks: brightness for features, proposals by a rule that can be checked."""

import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

from actionspan.live.learning import Actionness
from actionspan.live.play import Player, play
from actionspan.live.progress import Ended
from actionspan.live.proposing import OnlineProposal, Update
from actionspan.live.settings import StreamSettings, parse_source
from actionspan.video.settings import FrameSettings

CUTTING = FrameSettings(snippet_frames=4, stack=1, short_side=32)
LOOK_AHEAD = 2
EVERY = 5  # snippets between two proposals


class Brightness(nn.Module):
    """Brightness of the picture as features; `seconds` is how long a snippet takes."""

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__()
        self.seconds = seconds

    def forward(self, message: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        time.sleep(self.seconds)
        spent, _, rgb, gray = message
        means = rgb.float().mean(dim=(0, 1)) / 255
        motion = (gray[1:].float() - gray[:-1].float()).abs().mean().reshape(1) / 255
        return spent + self.seconds, torch.cat([motion, motion]), means, motion


class Passing(nn.Module):
    """A second stage, which does nothing for a while."""

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__()
        self.seconds = seconds

    def forward(self, message: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        time.sleep(self.seconds)
        return message[0] + self.seconds, *(tensor + 0 for tensor in message[1:])


class FakeProposer:
    """Knows brightness two snippets later, and proposes the last second at every fifth snippet."""

    learner = None

    def __init__(self) -> None:
        self.waiting: list[tuple[int, float, float]] = []
        self.count = 0
        self.gaps = 0
        self.fails_at: int | None = None

    def add(
        self, features: Mapping[str, Any], seconds: float, motion: Mapping[str, float]
    ) -> Update:
        value = float(features["rgb"].mean())
        self.waiting.append((self.count, seconds, value))
        self.count += 1
        update = Update()
        while len(self.waiting) > LOOK_AHEAD:
            self._emit(update)
        return update

    def gap(self) -> Update:
        self.gaps += 1
        return self._flush()

    def finish(self, duration_seconds: float) -> Update:
        update = self._flush()
        update.proposals.append(OnlineProposal(0.0, duration_seconds, 0.125))
        return update

    def state_dict(self) -> dict[str, Any]:
        return {"waiting": list(self.waiting), "count": self.count}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.waiting = [tuple(each) for each in state["waiting"]]
        self.count = state["count"]

    def _flush(self) -> Update:
        update = Update()
        while self.waiting:
            self._emit(update)
        return update

    def _emit(self, update: Update) -> None:
        number, seconds, value = self.waiting.pop(0)
        update.actionness.append(Actionness(number, seconds, value / 2, value, 1 - value))
        if number % EVERY == EVERY - 1:
            update.proposals.append(OnlineProposal(max(0.0, seconds - 1), seconds, value))


def player(seconds: float = 0.0) -> Player:
    """Return a player whose two stages take so long together for each snippet."""
    chain = nn.Sequential(Brightness(seconds / 2), Passing(seconds / 2))
    return Player(
        frames=CUTTING, chain=chain, proposer=FakeProposer(), made_of="fake", file=Path("fake")
    )


def run_stream(
    source: Path | str,
    out: Path,
    *,
    seconds: float = 0.0,
    resume: bool = False,
    stopping: threading.Event | None = None,
    echo: Any = None,
    made: Player | None = None,
    tell: Any = None,
    **settings: Any,
) -> Ended:
    """Play a source with a player of ours."""
    return play(
        parse_source(str(source)),
        made or player(seconds),
        StreamSettings(**{"executor": "sequential"} | settings),
        out,
        resume=resume,
        echo=echo,
        stopping=stopping,
        tell=tell,
    )


if __name__ == "__main__":  # a process of its own, which tests kill or interrupt
    from actionspan.cli import main

    with patch.object(Player, "load", lambda model, *_: player(float(str(model)))):
        sys.exit(main(sys.argv[1:]))
