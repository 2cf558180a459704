"""What the thread or the process of one stage does: steps and questions, in the order asked.

A stage needs only the messages that its two neighbours sent a step ago, so no barrier is needed:
with first-in first-out links every order in which stages run gives the same messages.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from torch import Tensor

from actionspan.streaming.messages import Message, Reply, cloned
from actionspan.streaming.stage import Stage


class Inlet(Protocol):
    """The receiving end of a link."""

    def receive(self) -> Message | None:
        """Wait for the next message; None is a step without a sample.

        Raises:
            LinkClosedError: There will be none.
        """


class Outlet(Protocol):
    """The sending end of a link."""

    def send(self, message: Message | None) -> None:
        """Send a message; what it holds may change once this returns."""


class Commands(Protocol):
    """What the pipeline asks of a worker."""

    def next(self) -> tuple[str, Any]:
        """Wait for the next command and what goes with it."""

    def reply(self, value: Any) -> None:
        """Answer a question."""


class Worker:
    """A stage with its links.

    Learning stages hold sample t - h at step t: the links between them begin with an empty message.
    Stages that only infer take a sample on as soon as it is there.
    """

    def __init__(
        self,
        stage: Stage,
        *,
        left: Inlet,
        right: Outlet,
        back: Outlet | None = None,
        signals: Inlet | None = None,
        targets: Inlet | None = None,
        answer: Callable[[Reply | None], None] | None = None,
        beat: Callable[[Stage], None],
    ) -> None:
        self.stage = stage
        self._left, self._right, self._back = left, right, back
        self._signals, self._targets, self._answer, self._beat = signals, targets, answer, beat
        learning, first = stage.learning is not None, stage.place.index == 0
        self._arrived: deque[Message | None] = deque([None] if learning and not first else [])
        self._signalled: deque[Message | None] = deque([None] if signals is not None else [])

    def run(self, commands: Commands) -> None:
        """Serve until told to stop."""
        answers: dict[str, Callable[[Any], Any]] = {
            "state": lambda _: self._state(),
            "load": self._load,
            "train": self.stage.train,
            "events": lambda _: list(self.stage.events or []),
            "settle": lambda _: None,
        }
        while True:
            command, given = commands.next()
            if command == "step":
                self._step()
            elif command in answers:
                commands.reply(answers[command](given))
            else:
                return

    def _step(self) -> None:
        arriving = self._arrived.popleft() if self._arrived else self._left.receive()
        self.stage.sample = arriving.sample if arriving else -1
        self._beat(self.stage)
        signal = target = None
        if self._signals is not None:
            signal = self._signalled.popleft() if self._signalled else self._signals.receive()
        if self._targets is not None:
            target = self._targets.receive()
        self.stage.step(arriving, signal, target, self)
        self._beat(self.stage)

    def output(self, message: Message | None, loss: Tensor | None) -> None:
        """Send the output to the right, or answer with it."""
        with self._waiting():
            if self._answer is None:
                self._right.send(message)
            else:
                self._answer(None if message is None else Reply(message, loss))

    def gradient(self, message: Message | None) -> None:
        """Send the gradient to the left."""
        if self._back is not None:
            with self._waiting():
                self._back.send(message)

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """Leave the time inside out of what the stage is busy: its neighbour may be slow."""
        begun = time.perf_counter()
        yield
        self.stage.busy_seconds -= time.perf_counter() - begun

    def _collect(self) -> None:
        """Take the messages on their way to the stage off the links."""
        if self.stage.learning is not None and self.stage.place.index and not self._arrived:
            self._arrived.append(self._left.receive())
        if self._signals is not None and not self._signalled:
            self._signalled.append(self._signals.receive())

    def _state(self) -> dict[str, Any]:
        """Return the stage's state with the messages on their way to it."""
        self._collect()
        held = {"arrived": self._arrived, "signalled": self._signalled}
        copies = {name: [m and cloned(m) for m in queue] for name, queue in held.items()}
        return self.stage.state_dict() | copies

    def _load(self, state: dict[str, Any]) -> None:
        self._collect()  # what is on the links belongs to another stream now
        self.stage.load_state_dict(state)
        self._beat(self.stage)
        self._arrived, self._signalled = deque(state["arrived"]), deque(state["signalled"])


COUNTS = ("steps", "samples", "updates", "sample", "busy_seconds", "cpu_seconds")


def report_of(stage: Stage) -> dict[str, Any]:
    """Return what a stage has done, and what it took."""
    counts = {name: getattr(stage, name) for name in COUNTS}
    return {**counts, "events": list(stage.events or [])}
