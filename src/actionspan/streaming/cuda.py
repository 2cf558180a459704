"""All stages on GPUs, driven by one thread that gives work to streams and never waits between them.

Each stage has a stream for its work and two for copies. Who needs what another stream makes waits
on the device, by an event; the host waits for answers, and for pinned memory when it is ahead.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from actionspan.streaming.device import Backend, Event, Lane, cuda_backend, lanes_of
from actionspan.streaming.device_stage import DeviceStage
from actionspan.streaming.errors import StageError, StallError
from actionspan.streaming.executors import Runs
from actionspan.streaming.messages import Message, Reply
from actionspan.streaming.stage import Options, Part
from actionspan.streaming.state import copied
from actionspan.streaming.transfer import Answers, Link, Pinned
from actionspan.streaming.worker import report_of

_AHEAD = 4  # samples, and targets, that may wait in pinned memory for their copy
_SPIN_SECONDS = 0.002  # before the host sleeps between two looks at an event
_SLEEP_SECONDS = 0.0001


class Ends(NamedTuple):
    """The links of a stage, and where it answers."""

    left: Link
    signals: Link | None  # None: it learns nothing, or is the last
    targets: Link | None
    right: Link | None  # None: it is the last
    back: Link | None


class StreamExecutor(Runs):
    """Runs the stages on GPUs, each in its own streams; the modules stay on the devices.

    Without `devices` neighbouring stages share one, or have the next; `backend` is CUDA's if not
    given.

    Raises:
        ValueError: There is no GPU, or the devices do not fit the stages.
    """

    name = "stream"

    def __init__(
        self,
        parts: Sequence[Part],
        options: Options,
        devices: Sequence[torch.device | str] | None = None,
        backend: Backend | None = None,
    ) -> None:
        self._backend = backend or cuda_backend(self.name)
        self._stall_seconds = options.stall_seconds
        self._learning = parts[0].learning is not None
        lanes = self.lanes = lanes_of(self._backend, len(parts), devices)
        self.stages: Sequence[DeviceStage] = [
            DeviceStage(part, options, self._backend, lane)
            for part, lane in zip(parts, lanes, strict=True)
        ]
        learning = parts[-1].learning
        if learning is not None and isinstance(learning.loss, nn.Module):
            self._backend.place(learning.loss, lanes[-1].device)
        self._finished: list[Event | None] = [None] * len(parts)  # the last step of each stage
        self._shown = False  # whether all was done once, so that the caller may read weights
        self._samples = self._link(lanes[0], pinned=Pinned(self._backend, self._wait, _AHEAD))
        self._answers = self._answering(lanes[-1])
        self._ends = self._joined()
        self._backend.synchronize()  # modules were moved in the default stream

    def _joined(self) -> list[Ends]:
        """Return the links of each stage."""
        lanes, learns = self.lanes, self._learning
        pairs = list(zip(lanes, lanes[1:], strict=False))
        right = [self._link(to, source, waiting=learns) for source, to in pairs]
        back = [self._link(to, source, waiting=True) for to, source in pairs] if learns else []
        self._targets: Link | None = None
        if learns:
            pinned = Pinned(self._backend, self._wait, _AHEAD)
            self._targets = self._link(lanes[-1], pinned=pinned)
        last = len(lanes) - 1
        return [
            Ends(
                left=right[index - 1] if index else self._samples,
                signals=back[index] if learns and index < last else None,
                targets=self._targets if index == last else None,
                right=right[index] if index < last else None,
                back=back[index - 1] if learns and index else None,
            )
            for index in range(len(lanes))
        ]

    def _link(self, to: Lane, source: Lane | None = None, **how: Any) -> Link:
        return Link(self._backend, to, source, **how)

    def _answering(self, lane: Lane) -> Answers:
        return Answers(self._backend, lane, self._wait)

    def feed(self, arriving: Message | None, target: Message | None) -> None:
        if self._shown:  # what the caller has begun to read must not change under it
            self._backend.synchronize()
            self._shown = False
        self._samples.put(arriving)
        if self._targets is not None:
            self._targets.put(target)
        for index, (stage, lane) in enumerate(zip(self.stages, self.lanes, strict=True)):
            try:
                with self._backend.on(lane.compute):
                    self._step(index)
            except StageError:
                raise
            except Exception as error:
                what = f"{type(error).__name__}: {error}"
                raise StageError(index, len(self.stages), stage.sample, what) from error

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
        self.stages[index].step(arriving, signal, target, Sending(self._ends[index], self._answers))

    def reply(self) -> Reply | None:
        return self._answers.reply()

    def ready(self, timeout: float | None) -> bool:
        until = time.monotonic() + (timeout or 0.0)
        while not (ready := self._asked(self._answers.ready)) and time.monotonic() < until:
            time.sleep(_SLEEP_SECONDS)
        return ready

    def _wait(self, event: Event) -> None:
        """Let the host wait for an event."""
        begun = time.monotonic()
        while not self._asked(lambda: self._backend.done(event)):
            waited = time.monotonic() - begun
            if waited > self._stall_seconds:
                stage = self._behind()
                what = f"no sign of life for {self._stall_seconds:g} s"
                raise StallError(stage, len(self.stages), self.stages[stage].sample, what)
            time.sleep(0.0 if waited < _SPIN_SECONDS else _SLEEP_SECONDS)

    def _asked(self, question: Callable[[], bool]) -> bool:
        """Ask a device, which may say that work failed that it got long ago."""
        try:
            return question()
        except RuntimeError as error:
            what = (
                f"the device failed in this stage or a later one: {str(error).splitlines()[0]}; "
                "CUDA_LAUNCH_BLOCKING=1 shows where"
            )
            stage = self._behind()
            sample = self.stages[stage].sample
            raise StageError(stage, len(self.stages), sample, what) from error

    def _behind(self) -> int:
        """Return the first stage that has not done all its work, as far as the device says."""
        for index, event in enumerate(self._finished):
            try:
                if event is not None and not self._backend.done(event):
                    return index
            except RuntimeError:
                return index
        return len(self.stages) - 1

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
            if ends.signals is not None:
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
        return [report_of(stage) for stage in self.stages]

    def close(self, *, failed: bool = False) -> None:
        if not failed:
            self._backend.synchronize()


class Sending:
    """The links that a stage sends to, as it sees them."""

    def __init__(self, ends: Ends, answers: Answers) -> None:
        self._ends, self._answers = ends, answers

    def output(self, message: Message | None, loss: Tensor | None) -> None:
        """Send the output to the right, or answer with it."""
        if self._ends.right is not None:
            self._ends.right.send(message)
        else:
            self._answers.send(message, loss)

    def gradient(self, message: Message | None) -> None:
        """Send the gradient to the left."""
        if self._ends.back is not None:
            self._ends.back.send(message)
