"""The ways to run stages, behind one interface, and the checks that hold for all of them."""

import socket
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, get_args

import torch

from actionspan.streaming.learning import Learning
from actionspan.streaming.messages import Answer, Message
from actionspan.streaming.sockets import module_tensors
from actionspan.streaming.stage import Module, Options, Part, Place, Stage, trainable

Executor = Literal["sequential", "thread", "process", "stream", "graph"]


class Runs(ABC):
    """What runs the stages: the same messages, whoever does."""

    stages: Sequence[Stage] = ()  # those in this process

    @abstractmethod
    def feed(self, arriving: Message | None, target: Message | None) -> None:
        """Begin a step: the first stage gets a sample, the last the target of what it holds."""

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
        place = Place(index, len(stages), before or learns, before)
        if learns and how is not None and how.optimiser is None:
            raise ValueError(f"{place} learns and needs an optimiser")
        parts.append(Part(module, place, how))
        before = before or learns
    return parts


def start(
    name: str, parts: list[Part], options: Options, devices: Sequence[torch.device | str] | None
) -> Runs:
    """Return the executor of a name, with all its threads or processes running.

    Raises:
        ValueError: There is no such executor, or it cannot run these stages here.
    """
    if devices is not None and name not in ("stream", "graph"):
        raise ValueError(
            f'devices: executor {name!r} runs on CPU; "stream" or "graph" take devices'
        )
    if name == "sequential":
        from actionspan.streaming.worker import SequentialExecutor

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
