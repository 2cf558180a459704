"""A stage and its links: steps and answers to questions, in the order asked.

A stage needs only the messages that its two neighbours sent a step ago, so no barrier is needed:
with first-in first-out links every order in which stages run gives the same messages.
"""

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

import torch
from torch import Tensor

from actionspan.streaming.errors import Deadline, LinkClosedError, StageError, StallError
from actionspan.streaming.messages import Answer, Ends, Message, cloned, joined
from actionspan.streaming.stage import COUNTS, Options, Part, Stage, error_of

CLOSED: Any = object()  # ends whoever waits for a message
_Answered = Callable[[Message | None, Tensor | None], None]  # the last output, and its loss


class Worker:
    """A stage with its links, which have `send(message)` and `receive()`; both may wait.

    Learning stages hold sample t - h at step t: the links between them begin with an empty message.
    Stages that only infer take a sample on as soon as it is there.

    Args:
        stage: What works.
        ends: Its links, but for the last stage's to the right.
        answer: Takes the output of the last stage.
        beat: Called before and after each step, and when a state is loaded.
    """

    def __init__(
        self, stage: Stage, ends: Ends, answer: _Answered, beat: Callable[[], None] = lambda: None
    ) -> None:
        self.stage, self._ends, self._answer, self._beat = stage, ends, answer, beat
        waits = stage.learning is not None and stage.place.index > 0
        self._arrived: deque[Message | None] = deque([None] if waits else [])
        self._signalled: deque[Message | None] = deque([None] if ends.signals else [])

    def run(self, following: Callable[[], tuple[str, Any]], reply: Callable[[Any], None]) -> None:
        """Serve until stopped: `following` waits for a command, `reply` answers a question."""
        answers: dict[str, Callable[[Any], Any]] = {
            "state": lambda _: self.state(),
            "load": self.load,
            "train": self.stage.train,
            "events": lambda _: list(self.stage.events or []),
            "settle": lambda _: None,
        }
        while True:
            command, given = following()
            if command == "step":
                self.step()
            elif command in answers:
                reply(answers[command](given))
            else:
                return

    def step(self) -> None:
        """Take what has arrived, do a step, and send what comes of it."""
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
        """Leave the time inside out of the stage's busy time: its neighbour may be slow."""
        begun = time.perf_counter()
        yield
        self.stage.busy_seconds -= time.perf_counter() - begun

    def _collect(self) -> None:
        """Take the messages on their way to the stage off the links."""
        if self.stage.learning is not None and self.stage.place.index and not self._arrived:
            self._arrived.append(self._ends.left.receive())
        if self._ends.signals and not self._signalled:
            self._signalled.append(self._ends.signals.receive())

    def state(self) -> dict[str, Any]:
        """Return the stage's state with the messages on their way to it."""
        self._collect()
        held = {"arrived": self._arrived, "signalled": self._signalled}
        copies = {name: [m and cloned(m) for m in queue] for name, queue in held.items()}
        return self.stage.state_dict() | copies

    def load(self, state: dict[str, Any]) -> None:
        """Resume from `state`."""
        self._collect()  # messages on the links belong to another stream now
        self.stage.load_state_dict(state)
        self._beat()
        self._arrived, self._signalled = deque(state["arrived"]), deque(state["signalled"])


class Queue:
    """A link inside a process; `copies`: the receiver may keep, the sender may change a message."""

    def __init__(self, copies: bool = True) -> None:
        self.items: SimpleQueue[Any] = SimpleQueue()
        self._copies = copies

    def send(self, message: Message | None) -> None:
        """Put in a message."""
        self.items.put(cloned(message) if message and self._copies else message)

    def receive(self) -> Message | None:
        """Wait for a message and take it out."""
        item: Message | None = self.items.get()
        if item is CLOSED:
            raise LinkClosedError
        return item


class Runs(ABC):
    """What runs the stages: the same messages, whoever does."""

    stages: Sequence[Stage] = ()  # those in this process

    @abstractmethod
    def feed(self, arriving: Message | None, target: Message | None) -> None:
        """Begin a step: the first stage gets a sample, the last the target of its sample."""

    @abstractmethod
    def reply(self) -> Answer | None:
        """Wait for the answer of the oldest step that was not asked for; None: it had none.

        Raises:
            StageError: A stage failed or died, or gave no sign of life for `stall_seconds`.
        """

    @abstractmethod
    def ready(self, timeout: float) -> bool:
        """Return whether the oldest step has its answer; wait at most `timeout` seconds for it."""

    def train(self, stage: int, training: bool) -> None:
        """Set the mode of a stage."""
        self.stages[stage].train(training)

    @abstractmethod
    def states(self) -> list[dict[str, Any]]:
        """Return the state of each stage, with the messages on their way to it."""

    @abstractmethod
    def load(self, states: list[dict[str, Any]]) -> None:
        """Resume from `states`."""

    @abstractmethod
    def settle(self) -> None:
        """Wait until all stages have done the steps begun; the caller may read weights then."""

    def reports(self) -> list[dict[str, Any]]:
        """Return what each stage has done so far."""
        return [stage.report() for stage in self.stages]

    def processes(self) -> list[int]:
        """Return the process ids of the stages that have a process of their own."""
        return []

    @abstractmethod
    def close(self, *, failed: bool = False) -> None:
        """End the work; `failed`: at once, without finishing it."""


class SequentialExecutor(Runs):
    """Runs the stages one after the other, each on what its neighbours sent a step ago.

    They run in the calling thread: the order of work that every other executor must equal.
    """

    def __init__(self, parts: Sequence[Part], options: Options) -> None:
        self.stages = [Stage(part, options) for part in parts]
        self._threads = options.threads
        self._replies: deque[Answer | None] = deque()
        ends, self._host = joined(len(parts), parts[0].learning is not None, self._link)
        self._workers = [
            Worker(stage, own, self._answer) for stage, own in zip(self.stages, ends, strict=True)
        ]

    def _link(self, source: int | None, to: int | None) -> tuple[Queue, Queue]:
        # A stage may return a tensor that it changes later; a gradient is nobody else's.
        link = Queue(copies=source is not None and to is not None and source < to)
        return link, link

    def _answer(self, message: Message | None, loss: Tensor | None) -> None:
        self._replies.append(message and Answer(cloned(message), loss))

    def feed(self, arriving: Message | None, target: Message | None) -> None:
        self._host.samples.send(arriving)
        if self._host.targets:
            self._host.targets.send(target)
        before = torch.get_num_threads()
        try:
            if before != self._threads:
                torch.set_num_threads(self._threads)
            for worker in self._workers:
                try:
                    worker.step()
                except Exception as error:
                    raise error_of(worker.stage, error) from error
        finally:
            if before != self._threads:
                torch.set_num_threads(before)

    def reply(self) -> Answer | None:
        return self._replies.popleft()

    def ready(self, timeout: float) -> bool:
        return bool(self._replies)

    def states(self) -> list[dict[str, Any]]:
        return [worker.state() for worker in self._workers]

    def load(self, states: list[dict[str, Any]]) -> None:
        for worker, state in zip(self._workers, states, strict=True):
            worker.load(state)
        self._replies.clear()

    def settle(self) -> None:
        """All steps begun are done."""

    def close(self, *, failed: bool = False) -> None:
        """There is nothing to end."""


class WorkerExecutor(Runs):
    """Runs each stage by a worker, which it sends orders and questions."""

    def __init__(self, parts: Sequence[Part], options: Options) -> None:
        self._count, self._learning = len(parts), parts[0].learning is not None
        self._deadline = Deadline(options.stall_seconds)
        self._failure: StageError | None = None
        self._replies: deque[Answer | None] = deque()  # of the last stage
        self._answers: list[deque[Any]] = [deque() for _ in parts]

    @abstractmethod
    def _command(self, stage: int, command: str, given: Any = None) -> None:
        """Give a worker a command."""

    @abstractmethod
    def _receive(self, timeout: float) -> None:
        """Wait for whatever comes first, and take it in: a reply, an answer or a failure."""

    @abstractmethod
    def _rows(self) -> list[list[float]]:
        """Return the `COUNTS` of each stage."""

    def reply(self) -> Answer | None:
        reply: Answer | None = self._next(self._replies)
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
        self._command(stage, command, given)
        return self._next(self._answers[stage])

    def _ask_all(self, command: str) -> list[Any]:
        for index in range(self._count):
            self._command(index, command)
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
