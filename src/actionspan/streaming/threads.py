"""A thread for each stage: for stages with work that releases the interpreter for 10 ms or more."""

import threading
import time
from collections import deque
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from typing import Any

import torch
from torch import Tensor
from torch.nn.modules.dropout import _DropoutNd

from actionspan.streaming.errors import LinkClosedError
from actionspan.streaming.messages import Answer, Ends, Message, cloned, joined
from actionspan.streaming.stage import Options, Part, Stage, error_of, parts_of
from actionspan.streaming.worker import CLOSED, Queue, Worker, WorkerExecutor

_JOIN_SECONDS = 1.5


class ThreadExecutor(WorkerExecutor):
    """Runs each stage in its own thread.

    Raises:
        ValueError: A stage has active dropout: threads share torch's generator, so its numbers
            would depend on who comes first.
    """

    def __init__(self, parts: Sequence[Part], options: Options) -> None:
        super().__init__(parts, options)
        self.stages = [Stage(part, options, random="none") for part in parts]
        for stage in self.stages:
            _refuse_random(stage)
        self._ended = threading.Event()  # nothing more is to be begun
        # A worker's message, and the queue that it is for; None: it is a failure.
        self._inbox: SimpleQueue[tuple[deque[Any] | None, Any]] = SimpleQueue()
        self._commands: list[SimpleQueue[tuple[str, Any]]] = [SimpleQueue() for _ in parts]
        self._links: list[Queue] = []
        ends, self._host = joined(self._count, self._learning, self._link)
        self._threads = [
            threading.Thread(
                target=self._serve,
                args=(index, own, options.threads),
                name=str(parts[index].place),
                daemon=True,
            )
            for index, own in enumerate(ends)
        ]
        for thread in self._threads:
            thread.start()

    def _link(self, source: int | None, to: int | None) -> tuple[Queue, Queue]:
        link = Queue()
        self._links.append(link)
        return link, link

    def _serve(self, index: int, ends: Ends, threads: int) -> None:
        """Do the work of a stage's thread."""
        stage = self.stages[index]

        def following() -> tuple[str, Any]:
            command = self._commands[index].get()
            if self._ended.is_set():
                raise LinkClosedError
            return command

        def reply(value: Any) -> None:
            self._inbox.put((self._answers[index], value))

        def answer(message: Message | None, loss: Tensor | None) -> None:
            self._inbox.put((self._replies, message and Answer(cloned(message), loss)))

        torch.set_num_threads(threads)
        try:
            Worker(stage, ends, answer).run(following, reply)
        except LinkClosedError:
            pass
        except BaseException as error:
            self._inbox.put((None, error_of(stage, error)))

    def feed(self, arriving: Message | None, target: Message | None) -> None:
        self._deadline.restart()
        self._host.samples.send(arriving)
        if self._host.targets:
            self._host.targets.send(target)
        for index in range(self._count):
            self._command(index, "step")

    def train(self, stage: int, training: bool) -> None:
        _refuse_random(self.stages[stage], training)
        self._ask(stage, "train", training)

    def load(self, states: list[dict[str, Any]]) -> None:
        for stage, state in zip(self.stages, states, strict=True):
            if any(state["training"]):
                _refuse_random(stage, True)
        for index, state in enumerate(states):
            self._ask(index, "load", state)

    def close(self, *, failed: bool = False) -> None:
        for index in range(self._count):
            self._command(index, "stop")
        if failed:
            self._ended.set()
            for link in self._links:
                link.items.put(CLOSED)
        until = time.monotonic() + _JOIN_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _command(self, stage: int, command: str, given: Any = None) -> None:
        self._commands[stage].put((command, given))

    def _receive(self, timeout: float) -> None:
        if self._failure is None:
            try:
                queue, item = self._inbox.get(timeout=timeout)
            except Empty:
                return
            if queue is not None:
                queue.append(item)
                return
            self._failure = item
        raise self._failure

    def _rows(self) -> list[list[float]]:
        return [stage.counts() for stage in self.stages]


def _refuse_random(stage: Stage, training: bool | None = None) -> None:
    """Raise if a stage draws random numbers; `training` is the mode that it is to have."""
    for part in parts_of(stage.module):
        if part.training if training is None else training:
            rate = part.p if isinstance(part, _DropoutNd) else getattr(part, "dropout", 0.0)
            if isinstance(part, torch.nn.RReLU) or (isinstance(rate, float) and rate > 0):
                raise ValueError(
                    f"{stage.place} has active dropout: "
                    "threads share one random generator and would not repeat; use executor "
                    '"process" or "sequential", or eval()'
                )
