"""All stages in the thread that calls: the order of work that every other executor must equal."""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from actionspan.streaming.errors import StageError
from actionspan.streaming.messages import Message, Reply, cloned
from actionspan.streaming.stage import Options, Part, Stage
from actionspan.streaming.worker import report_of

Messages = list[Message | None]


class SequentialExecutor:
    """Runs the stages one after the other, each on what its neighbours sent a step ago."""

    def __init__(self, parts: Sequence[Part], options: Options) -> None:
        self.stages = [Stage(part, options) for part in parts]
        self._threads = options.threads
        self._learning = parts[0].learning is not None
        self._outputs: Messages = [None] * len(parts)  # of the step before
        self._gradients: Messages = [None] * len(parts)
        self._replies: deque[Reply | None] = deque()

    def feed(self, arriving: Message | None, target: Message | None) -> None:
        """Do a step: the first stage gets a sample, the last the target of what it holds."""
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
                    self._replies.append(sent and Reply(cloned(sent), links.loss))
        self._outputs, self._gradients = outputs, gradients

    def reply(self) -> Reply | None:
        """Return the answer of the oldest step that was not asked for; None: it had none."""
        return self._replies.popleft()

    def ready(self, timeout: float | None) -> bool:
        """Return whether the oldest step has its answer."""
        return bool(self._replies)

    def train(self, stage: int, training: bool) -> None:
        """Set the mode of a stage."""
        self.stages[stage].train(training)

    def states(self) -> list[dict[str, Any]]:
        """Return the state of each stage, with the messages on their way to it."""
        states = []
        for index, stage in enumerate(self.stages):
            arrived = [self._outputs[index - 1]] if self._learning and index else []
            signalled = (
                [] if stage.place.last or not self._learning else [self._gradients[index + 1]]
            )
            states.append(
                stage.state_dict()
                | {
                    "arrived": [m and cloned(m) for m in arrived],
                    "signalled": [m and cloned(m) for m in signalled],
                }
            )
        return states

    def load(self, states: list[dict[str, Any]]) -> None:
        """Go on from `states`."""
        for index, (stage, state) in enumerate(zip(self.stages, states, strict=True)):
            stage.load_state_dict(state)
            if state["arrived"]:
                self._outputs[index - 1] = state["arrived"][0]
            if state["signalled"]:
                self._gradients[index + 1] = state["signalled"][0]
        self._replies.clear()

    def settle(self) -> None:
        """All steps begun are done."""

    def reports(self) -> list[dict[str, Any]]:
        """Return what each stage has done."""
        return [report_of(stage) for stage in self.stages]

    def processes(self) -> list[int]:
        """Return the process ids of the stages that have a process of their own."""
        return []

    def close(self, *, failed: bool = False) -> None:
        """There is nothing to end."""

    @contextmanager
    def _threads_set(self) -> Iterator[None]:
        before = torch.get_num_threads()
        if before == self._threads:
            yield
            return
        torch.set_num_threads(self._threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)


class _Collected:
    sent: Message | None = None
    loss: Tensor | None = None
    returned: Message | None = None

    def output(self, message: Message | None, loss: Tensor | None) -> None:
        self.sent, self.loss = message, loss

    def gradient(self, message: Message | None) -> None:
        self.returned = message
