"""All stages on GPUs, driven by one thread that gives work to streams and never waits between them.

Each stage has a stream for its work and two for copies. Who needs what another stream makes waits
on the device, by an event; the host waits for answers, and for pinned memory when it is ahead.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from actionspan.streaming.device import Event, cuda_backend, lanes_of
from actionspan.streaming.device_stage import DeviceStage
from actionspan.streaming.errors import StageError, StallError
from actionspan.streaming.messages import Answer, Ends, Message, joined
from actionspan.streaming.stage import Options, Part, error_of
from actionspan.streaming.state import copied
from actionspan.streaming.transfer import Answers, Link, Pinned
from actionspan.streaming.worker import Runs

_AHEAD = 4  # samples, and targets, that may wait in pinned memory for their copy
_SPIN_SECONDS = 0.002  # before the host sleeps between two looks at an event
_SLEEP_SECONDS = 0.0001


class StreamExecutor(Runs):
    """Runs the stages on GPUs, each in its own streams; the modules stay on the devices.

    Without `devices` neighbouring stages share one, or have the next.

    Raises:
        ValueError: The machine has no GPU, or the devices do not fit the stages.
    """

    name = "stream"
    link: type[Link] = Link
    answering: type[Answers] = Answers

    def __init__(
        self,
        parts: Sequence[Part],
        options: Options,
        devices: Sequence[torch.device | str] | None = None,
    ) -> None:
        backend = self._backend = cuda_backend(self.name)
        self._stall_seconds = options.stall_seconds
        self._learning = parts[0].learning is not None
        lanes = self.lanes = lanes_of(backend, len(parts), devices)
        self.stages: Sequence[DeviceStage] = [
            DeviceStage(part, options, backend, lane)
            for part, lane in zip(parts, lanes, strict=True)
        ]
        learning = parts[-1].learning
        if learning is not None and isinstance(learning.loss, nn.Module):
            backend.place(learning.loss, lanes[-1].device)
        self._finished: list[Event | None] = [None] * len(parts)  # the last step of each stage
        self._shown = False  # whether all was done once, so that the caller may read weights
        self._ends, self._host = joined(len(parts), self._learning, self._link)
        self._answers: Answers = self._host.answers
        backend.synchronize()  # modules were moved in the default stream

    def _link(self, source: int | None, to: int | None) -> tuple[Link | Answers, Link | Answers]:
        """Return both ends of a link, which are one object."""
        backend, lanes = self._backend, self.lanes
        made: Link | Answers
        if to is None:
            made = self.answering(backend, lanes[-1], self._wait)
        elif source is None:
            made = self.link(backend, lanes[to], pinned=Pinned(backend, self._wait, _AHEAD))
        else:
            made = self.link(backend, lanes[to], lanes[source], waiting=self._learning)
        return made, made

    def feed(self, arriving: Message | None, target: Message | None) -> None:
        if self._shown:  # data that the caller has begun to read must not change under it
            self._backend.synchronize()
            self._shown = False
        self._host.samples.put(arriving)
        if self._host.targets:
            self._host.targets.put(target)
        for index, (stage, lane) in enumerate(zip(self.stages, self.lanes, strict=True)):
            try:
                with self._backend.on(lane.compute):
                    self._step(index)
            except StageError:
                raise
            except Exception as error:
                raise error_of(stage, error) from error

    def _step(self, index: int) -> None:
        """Give a stage's step to its streams."""
        stage, ends = self.stages[index], self._ends[index]
        inlets = [ends.left, ends.signals, ends.targets]
        arriving, signal, target = (link.take() if link else None for link in inlets)
        stage.sample = arriving.sample if arriving else -1
        self._run(index, arriving, signal, target)
        done = self._finished[index] = self._backend.record(self.lanes[index].compute)
        for link in inlets:
            if link is not None:
                link.release(done)

    def _run(
        self, index: int, arriving: Message | None, signal: Message | None, target: Message | None
    ) -> None:
        """Do the work of a step and send what comes of it."""
        self.stages[index].step(arriving, signal, target, _Sending(self._ends[index]))

    def reply(self) -> Answer | None:
        return self._answers.reply()

    def ready(self, timeout: float) -> bool:
        until = time.monotonic() + timeout
        while not (ready := self._asked(self._answers.ready)) and time.monotonic() < until:
            time.sleep(_SLEEP_SECONDS)
        return ready

    def _wait(self, event: Event) -> None:
        """Let the host wait for an event."""
        begun = time.monotonic()
        while not self._asked(lambda: self._backend.done(event)):
            waited = time.monotonic() - begun
            if waited > self._stall_seconds:
                raise self._error(StallError, f"no sign of life for {self._stall_seconds:g} s")
            time.sleep(0.0 if waited < _SPIN_SECONDS else _SLEEP_SECONDS)

    def _asked(self, question: Callable[[], bool]) -> bool:
        """Ask a device, which may report that work failed that it got long ago."""
        try:
            return question()
        except RuntimeError as error:
            what = (
                f"the device failed in this stage or a later one: {str(error).splitlines()[0]}; "
                "CUDA_LAUNCH_BLOCKING=1 shows where"
            )
            raise self._error(StageError, what) from error

    def _error(self, kind: type[StageError], what: str) -> StageError:
        """Return an error of the first stage with work left, as far as the device reports it."""
        stage = len(self.stages) - 1
        for index, event in enumerate(self._finished):
            try:
                behind = event is not None and not self._backend.done(event)
            except RuntimeError:
                behind = True
            if behind:
                stage = index
                break
        return kind(stage, len(self.stages), self.stages[stage].sample, what)

    def states(self) -> list[dict[str, Any]]:
        self._backend.synchronize()
        states = []
        for index, (stage, ends) in enumerate(zip(self.stages, self._ends, strict=True)):
            held = {
                "arrived": ends.left.held() if self._learning and index else [],
                "signalled": ends.signals.held() if ends.signals else [],
            }
            with self._backend.on(self.lanes[index].compute):
                states.append(stage.state_dict() | copied(held, "cpu"))
        return states

    def load(self, states: list[dict[str, Any]]) -> None:
        self._backend.synchronize()
        for index, (stage, state) in enumerate(zip(self.stages, states, strict=True)):
            ends = self._ends[index]
            with self._backend.on(self.lanes[index].compute):
                stage.load_state_dict(state)
            if self._learning and index:
                ends.left.load(state["arrived"])
            if ends.signals:
                ends.signals.load(state["signalled"])
        self._answers.clear()
        self._backend.synchronize()

    def settle(self) -> None:
        for event in self._finished:
            if event is not None:
                self._wait(event)
        self._shown = True

    def reports(self) -> list[dict[str, Any]]:
        self.settle()
        for stage in self.stages:
            stage.read_clock()
        return [stage.report() for stage in self.stages]

    def close(self, *, failed: bool = False) -> None:
        if not failed:
            self._backend.synchronize()


class _Sending:
    """The links that a stage sends to, as it sees them."""

    def __init__(self, ends: Ends) -> None:
        self._ends = ends

    def output(self, message: Message | None, loss: Tensor | None) -> None:
        """Send the output to the right; on the last stage's way to the host its loss goes too."""
        self._ends.right.send(message, loss)

    def gradient(self, message: Message | None) -> None:
        """Send the gradient to the left."""
        if self._ends.back:
            self._ends.back.send(message)
