"""What the thread or the process of one stage does: steps and questions, in the order asked.

A stage needs only the messages that its two neighbours sent a step ago, so no barrier is needed:
with first-in first-out links every order in which stages run gives the same messages.
"""

import time
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import Tensor

from actionspan.streaming.errors import Deadline, StageError, StallError
from actionspan.streaming.executors import Runs
from actionspan.streaming.messages import Ends, Message, Reply, cloned
from actionspan.streaming.stage import COUNTS, Options, Part, Stage

Answered = Callable[[Message | None, Tensor | None], None]  # the last output, and its loss


class Worker:
    """A stage with its links, which have `send(message)` and `receive()`; both may wait.

    Learning stages hold sample t - h at step t: the links between them begin with an empty message.
    Stages that only infer take a sample on as soon as it is there.

    Args:
        stage: What works.
        ends: Its links, but for the last stage's to the right.
        answer: Takes what the last stage makes.
        beat: Called before and after each step, and when a state is loaded.
    """

    def __init__(
        self, stage: Stage, ends: Ends, answer: Answered, beat: Callable[[], None] = lambda: None
    ) -> None:
        self.stage, self._ends, self._answer, self._beat = stage, ends, answer, beat
        waits = stage.learning is not None and stage.place.index > 0
        self._arrived: deque[Message | None] = deque([None] if waits else [])
        self._signalled: deque[Message | None] = deque([None] if ends.signals else [])

    def run(self, following: Callable[[], tuple[str, Any]], reply: Callable[[Any], None]) -> None:
        """Serve until told to stop: `following` waits for a command, `reply` answers a question."""
        answers: dict[str, Callable[[Any], Any]] = {
            "state": lambda _: self._state(),
            "load": self._load,
            "train": self.stage.train,
            "events": lambda _: list(self.stage.events or []),
            "settle": lambda _: None,
        }
        while True:
            command, given = following()
            if command == "step":
                self._step()
            elif command in answers:
                reply(answers[command](given))
            else:
                return

    def _step(self) -> None:
        ends = self._ends
        arriving = self._arrived.popleft() if self._arrived else ends.left.receive()
        self.stage.sample = arriving.sample if arriving else -1
        self._beat()
        signal = target = None
        if ends.signals:
            signal = self._signalled.popleft() if self._signalled else ends.signals.receive()
        if ends.targets:
            target = ends.targets.receive()
        self.stage.step(arriving, signal, target, self)
        self._beat()

    def output(self, message: Message | None, loss: Tensor | None) -> None:
        """Send the output to the right, or answer with it."""
        with self._waiting():
            if self.stage.place.last:
                self._answer(message, loss)
            else:
                self._ends.right.send(message)

    def gradient(self, message: Message | None) -> None:
        """Send the gradient to the left."""
        if self._ends.back:
            with self._waiting():
                self._ends.back.send(message)

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """Leave the time inside out of what the stage is busy: its neighbour may be slow."""
        begun = time.perf_counter()
        yield
        self.stage.busy_seconds -= time.perf_counter() - begun

    def _collect(self) -> None:
        """Take the messages on their way to the stage off the links."""
        if self.stage.learning is not None and self.stage.place.index and not self._arrived:
            self._arrived.append(self._ends.left.receive())
        if self._ends.signals and not self._signalled:
            self._signalled.append(self._ends.signals.receive())

    def _state(self) -> dict[str, Any]:
        """Return the stage's state with the messages on their way to it."""
        self._collect()
        held = {"arrived": self._arrived, "signalled": self._signalled}
        copies = {name: [m and cloned(m) for m in queue] for name, queue in held.items()}
        return self.stage.state_dict() | copies

    def _load(self, state: dict[str, Any]) -> None:
        self._collect()  # what is on the links belongs to another stream now
        self.stage.load_state_dict(state)
        self._beat()
        self._arrived, self._signalled = deque(state["arrived"]), deque(state["signalled"])


class WorkerExecutor(Runs):
    """Runs each stage by a worker, which it tells what to do and asks what it knows."""

    def __init__(self, parts: Sequence[Part], options: Options) -> None:
        self._count, self._learning = len(parts), parts[0].learning is not None
        self._deadline = Deadline(options.stall_seconds)
        self._failure: StageError | None = None
        self._replies: deque[Reply | None] = deque()  # of the last stage
        self._answers: list[deque[Any]] = [deque() for _ in parts]

    @abstractmethod
    def _tell(self, stage: int, command: str, given: Any = None) -> None:
        """Give a worker a command."""

    @abstractmethod
    def _receive(self, timeout: float) -> None:
        """Wait for whatever comes first, and take it in: a reply, an answer or a failure."""

    @abstractmethod
    def _rows(self) -> list[list[float]]:
        """Return the `COUNTS` of each stage."""

    def reply(self) -> Reply | None:
        reply: Reply | None = self._next(self._replies)
        return reply

    def ready(self, timeout: float) -> bool:
        until = time.monotonic() + timeout
        while not self._replies:
            left = until - time.monotonic()
            self._receive(max(0.0, left))
            if not self._replies and left <= 0:
                self._left()
                return False
        return True

    def states(self) -> list[dict[str, Any]]:
        return self._ask_all("state")

    def settle(self) -> None:
        self._ask_all("settle")

    def _ask(self, stage: int, command: str, given: Any = None) -> Any:
        self._tell(stage, command, given)
        return self._next(self._answers[stage])

    def _ask_all(self, command: str) -> list[Any]:
        for index in range(self._count):
            self._tell(index, command)
        return list(map(self._next, self._answers))

    def _next(self, queue: deque[Any]) -> Any:
        """Wait until a queue has an item, as long as stages are alive, and take it."""
        while not queue:
            self._receive(min(1.0, self._left()))
        return queue.popleft()

    def _left(self) -> float:
        """Return the seconds until the deadline; raise StallError once it has passed."""
        rows = self._rows()
        left = self._deadline.left(rows)
        if left == 0:
            steps = [row[0] for row in rows]
            what = f"no sign of life for {self._deadline.seconds:g} s"
            raise self._error(StallError, steps.index(min(steps)), what)
        return left

    def _error(self, kind: type[StageError], stage: int, what: str) -> StageError:
        """Return an error of a stage and of the sample that it holds, or held last."""
        sample = int(self._rows()[stage][COUNTS.index("sample")])
        self._failure = kind(stage, self._count, sample, what)
        return self._failure
