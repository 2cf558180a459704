"""A thread for each stage: for stages whose work releases the interpreter for 10 ms or more."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any

import torch
from torch.nn.modules.dropout import _DropoutNd

from actionspan.streaming.errors import Deadline, LinkClosedError, StageError, StallError
from actionspan.streaming.executors import Runs
from actionspan.streaming.messages import Message, Reply, cloned
from actionspan.streaming.stage import Options, Part, Stage, parts_of
from actionspan.streaming.worker import Worker

_CLOSED: Any = object()
_JOIN_SECONDS = 1.5


class _Queue:
    """A link inside a process."""

    def __init__(self) -> None:
        self.items: SimpleQueue[Any] = SimpleQueue()

    def send(self, message: Message | None) -> None:
        # A stage may return what it goes on to change, and the receiver may keep what it gets.
        self.items.put(message and cloned(message))

    def receive(self) -> Message | None:
        item: Message | None = self.items.get()
        if item is _CLOSED:
            raise LinkClosedError
        return item


class _Commands:
    def __init__(self, reply: Callable[[Any], None], ended: threading.Event) -> None:
        self.asked: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        self.reply, self._ended = reply, ended

    def next(self) -> tuple[str, Any]:
        asked = self.asked.get()
        if self._ended.is_set():
            raise LinkClosedError
        return asked


class ThreadExecutor(Runs):
    """Runs each stage in its own thread.

    Raises:
        ValueError: A stage has active dropout: threads share torch's generator, so its numbers
            would depend on who comes first.
    """

    def __init__(self, parts: Sequence[Part], options: Options) -> None:
        stages = [Stage(part, options, random="none") for part in parts]
        for stage in stages:
            _refuse_random(stage)
        self.stages, self._deadline = stages, Deadline(options.stall_seconds)
        self._ended = threading.Event()  # nothing more is to be begun
        self._done: SimpleQueue[Any] = SimpleQueue()  # replies of the last stage, and failures
        self._ready: deque[Any] = deque()  # those taken out already
        count = len(stages)
        learning = stages[0].learning is not None
        right = [_Queue() for _ in range(count)]  # to stage h
        back = [_Queue() for _ in range(count - 1)]  # from stage h + 1 to stage h
        self._samples, self._targets = right[0], _Queue()
        self._links = [*right, *back, self._targets]
        self._commands = []
        self._beats = [0] * count
        self._threads = []
        for index, stage in enumerate(stages):
            last = index == count - 1

            def beat(stage: Stage) -> None:
                self._beats[stage.place.index] += 1

            worker = Worker(
                stage,
                left=right[index],
                right=_Queue() if last else right[index + 1],
                back=back[index - 1] if learning and index else None,
                signals=back[index] if learning and not last else None,
                targets=self._targets if learning and last else None,
                answer=self._answered if last else None,
                beat=beat,
            )
            replies: SimpleQueue[Any] = SimpleQueue()
            commands = _Commands(replies.put, self._ended)
            self._commands.append((commands, replies))
            self._threads.append(
                threading.Thread(
                    target=self._serve,
                    args=(worker, commands, options.threads),
                    name=f"stage {index + 1} of {count}",
                    daemon=True,
                )
            )
        for thread in self._threads:
            thread.start()

    def _serve(self, worker: Worker, commands: _Commands, threads: int) -> None:
        torch.set_num_threads(threads)
        try:
            worker.run(commands)
        except LinkClosedError:
            pass
        except BaseException as error:
            stage, what = worker.stage, f"{type(error).__name__}: {error}"
            failure = StageError(stage.place.index, stage.place.stages, stage.sample, what)
            failure.__cause__ = error
            self._done.put(failure)
            for _, replies in self._commands:
                replies.put(failure)

    def _answered(self, reply: Reply | None) -> None:
        self._done.put(reply and reply._replace(output=cloned(reply.output)))

    def feed(self, arriving: Message | None, target: Message | None) -> None:
        self._deadline.restart()
        self._samples.send(arriving)
        if self.stages[0].learning is not None:
            self._targets.send(target)
        for commands, _ in self._commands:
            commands.asked.put(("step", None))

    def reply(self) -> Reply | None:
        item = self._ready.popleft() if self._ready else self._wait(self._done)
        reply: Reply | None = self._taken(item)
        return reply

    def ready(self, timeout: float | None) -> bool:
        if not self._ready:
            try:
                self._ready.append(self._done.get(block=bool(timeout), timeout=timeout or None))
            except Empty:
                self._left()
                return False
        return True

    def train(self, stage: int, training: bool) -> None:
        _refuse_random(self.stages[stage], training)
        self._ask(stage, "train", training)

    def states(self) -> list[dict[str, Any]]:
        return self._ask_all("state")

    def load(self, states: list[dict[str, Any]]) -> None:
        for stage, state in zip(self.stages, states, strict=True):
            if any(state["training"]):
                _refuse_random(stage, True)
        for index, state in enumerate(states):
            self._ask(index, "load", state)

    def settle(self) -> None:
        self._ask_all("settle")

    def close(self, *, failed: bool = False) -> None:
        for commands, _ in self._commands:
            commands.asked.put(("stop", None))
        if failed:
            self._ended.set()
            for link in self._links:
                link.items.put(_CLOSED)
        until = time.monotonic() + _JOIN_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _ask(self, stage: int, command: str, given: Any = None) -> Any:
        commands, replies = self._commands[stage]
        commands.asked.put((command, given))
        return self._taken(self._wait(replies))

    def _ask_all(self, command: str) -> list[Any]:
        for commands, _ in self._commands:
            commands.asked.put((command, None))
        return [self._taken(self._wait(replies)) for _, replies in self._commands]

    def _wait(self, queue: "SimpleQueue[Any]") -> Any:
        """Wait for an item as long as stages are alive."""
        while True:
            try:
                return queue.get(timeout=min(1.0, self._left()))
            except Empty:
                continue

    def _left(self) -> float:
        """Return the seconds until the deadline; raise StallError once it has passed."""
        left = self._deadline.left(self._beats)
        if left == 0:
            steps = [stage.steps for stage in self.stages]
            slowest = steps.index(min(steps))
            what = f"no sign of life for {self._deadline.seconds:g} s"
            raise StallError(slowest, len(steps), self.stages[slowest].sample, what)
        return left

    @staticmethod
    def _taken(item: Any) -> Any:
        if isinstance(item, StageError):
            raise item
        return item


def _refuse_random(stage: Stage, training: bool | None = None) -> None:
    """Raise if a stage draws random numbers; `training` is the mode that it is to have."""
    for part in parts_of(stage.module):
        if part.training if training is None else training:
            rate = part.p if isinstance(part, _DropoutNd) else getattr(part, "dropout", 0.0)
            if isinstance(part, torch.nn.RReLU) or (isinstance(rate, float) and rate > 0):
                raise ValueError(
                    f"stage {stage.place.index + 1} of {stage.place.stages} has active dropout: "
                    "threads share one random generator and would not repeat; use executor "
                    '"process" or "sequential", or eval()'
                )
