"""The ways to run stages, behind one interface, and the checks that hold for all of them."""

import socket
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from actionspan.streaming.errors import StageError
from actionspan.streaming.learning import Learning
from actionspan.streaming.messages import Message, Reply, cloned
from actionspan.streaming.sockets import module_tensors
from actionspan.streaming.stage import Module, Options, Part, Place, Stage, trainable

_MOST_CREDITS = 64  # what waits in sockets must fit into them
Executor = Literal["sequential", "thread", "process", "stream", "graph"]


class Runs(ABC):
    """What runs the stages: the same messages, whoever does."""

    stages: Sequence[Stage] = ()  # those in this process

    @abstractmethod
    def feed(self, arriving: Message | None, target: Message | None) -> None:
        """Begin a step: the first stage gets a sample, the last the target of what it holds."""

    @abstractmethod
    def reply(self) -> Reply | None:
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
        """Go on from `states`."""

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
        """End what runs; `failed`: at once, without doing what was begun."""


def check_numbers(threads: int, credits: int) -> None:
    """Check what holds for every executor.

    Raises:
        ValueError: A number is not allowed.
    """
    if threads < 1:
        raise ValueError(f"threads {threads}: at least 1")
    if not 1 <= credits <= _MOST_CREDITS:
        raise ValueError(f"credits {credits}: from 1 to {_MOST_CREDITS}")


def parts_of_pipeline(stages: Sequence[Module], learning: Sequence[Learning | None]) -> list[Part]:
    """Return the stages with their places.

    Raises:
        ValueError: There is no stage, two share a parameter, or one that learns has no optimiser.
    """
    if not stages:
        raise ValueError("a pipeline needs at least one stage")
    owners: dict[int, int] = {}
    parts, before = [], False
    for index, (module, how) in enumerate(zip(stages, learning, strict=True)):
        tensors = module_tensors(module)
        for tensor in tensors:
            if owners.setdefault(id(tensor), index) != index:
                raise ValueError(
                    f"stages {owners[id(tensor)] + 1} and {index + 1} share a parameter or a "
                    "buffer; each stage learns on its own, so put both into one stage"
                )
        learns = how is not None and bool(trainable(module))
        if learns and how is not None and how.optimiser is None:
            raise ValueError(f"stage {index + 1} of {len(stages)} learns and needs an optimiser")
        parts.append(Part(module, Place(index, len(stages), before or learns, before), how))
        before = before or learns
    return parts


def start(
    name: str,
    parts: list[Part],
    options: Options,
    devices: Sequence[torch.device | str] | None,
) -> Runs:
    """Return the executor of a name, with all its threads or processes running.

    Args:
        name: One of `Executor`.
        parts: The stages.
        options: What holds for all.
        devices: Of each stage, for `stream` and `graph`; None: neighbours share one.

    Raises:
        ValueError: There is no such executor, or it cannot run these stages here.
    """
    if devices is not None and name not in ("stream", "graph"):
        raise ValueError(
            f'devices: executor {name!r} runs on CPU; "stream" or "graph" take devices'
        )
    if name == "sequential":
        return SequentialExecutor(parts, options)
    if name == "thread":
        from actionspan.streaming.threads import ThreadExecutor

        return ThreadExecutor(parts, options)
    if name == "process":
        if not hasattr(socket, "send_fds"):
            raise ValueError('executor "process" needs Linux or macOS; use "thread"')
        from actionspan.streaming.processes import ProcessExecutor

        return ProcessExecutor(parts, options)
    if name == "stream":
        from actionspan.streaming.cuda import StreamExecutor

        return StreamExecutor(parts, options, devices)
    if name == "graph":
        from actionspan.streaming.graph import GraphExecutor

        return GraphExecutor(parts, options, devices)
    raise ValueError(f"executor {name!r}: one of {', '.join(get_args(Executor))}")


Messages = list[Message | None]


class SequentialExecutor(Runs):
    """Runs the stages one after the other, each on what its neighbours sent a step ago.

    They run in the calling thread: the order of work that every other executor must equal.
    """

    def __init__(self, parts: Sequence[Part], options: Options) -> None:
        self.stages = [Stage(part, options) for part in parts]
        self._threads = options.threads
        self._learning = parts[0].learning is not None
        self._outputs: Messages = [None] * len(parts)  # of the step before
        self._gradients: Messages = [None] * len(parts)
        self._replies: deque[Reply | None] = deque()

    def feed(self, arriving: Message | None, target: Message | None) -> None:
        outputs: Messages = [None] * len(self.stages)
        gradients: Messages = [None] * len(self.stages)
        with self._threads_set():
            for index, stage in enumerate(self.stages):
                last = stage.place.last
                earlier = self._outputs if self._learning else outputs
                links = _Collected()
                try:
                    stage.step(
                        earlier[index - 1] if index else arriving,
                        None if last else self._gradients[index + 1],
                        target if last else None,
                        links,
                    )
                except Exception as error:
                    what = f"{type(error).__name__}: {error}"
                    raise StageError(index, len(self.stages), stage.sample, what) from error
                outputs[index], gradients[index] = links.sent, links.returned
                if last:
                    sent = links.sent
                    self._replies.append(sent and Reply(sent, links.loss))
        self._outputs, self._gradients = outputs, gradients

    def reply(self) -> Reply | None:
        return self._replies.popleft()

    def ready(self, timeout: float) -> bool:
        return bool(self._replies)

    def states(self) -> list[dict[str, Any]]:
        states = []
        for index, stage in enumerate(self.stages):
            held: dict[str, Messages] = {"arrived": [], "signalled": []}
            if self._learning and index:
                held["arrived"] = [self._outputs[index - 1]]
            if self._learning and not stage.place.last:
                held["signalled"] = [self._gradients[index + 1]]
            copies = {name: [m and cloned(m) for m in sent] for name, sent in held.items()}
            states.append(stage.state_dict() | copies)
        return states

    def load(self, states: list[dict[str, Any]]) -> None:
        for index, (stage, state) in enumerate(zip(self.stages, states, strict=True)):
            stage.load_state_dict(state)
            if state["arrived"]:
                self._outputs[index - 1] = state["arrived"][0]
            if state["signalled"]:
                self._gradients[index + 1] = state["signalled"][0]
        self._replies.clear()

    def settle(self) -> None:
        """All steps begun are done."""

    def close(self, *, failed: bool = False) -> None:
        """There is nothing to end."""

    @contextmanager
    def _threads_set(self) -> Iterator[None]:
        before = torch.get_num_threads()
        if before != self._threads:
            torch.set_num_threads(self._threads)
        try:
            yield
        finally:
            if before != self._threads:
                torch.set_num_threads(before)


class _Collected:
    sent: Message | None = None
    loss: Tensor | None = None
    returned: Message | None = None

    def output(self, message: Message | None, loss: Tensor | None) -> None:
        # A stage may return what it goes on to change.
        self.sent, self.loss = message and cloned(message), loss

    def gradient(self, message: Message | None) -> None:
        self.returned = message
