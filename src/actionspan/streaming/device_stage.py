"""A stage on a device: its random numbers, its clock, and a state that any executor takes."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from actionspan.streaming.device import CudaBackend, Event, Lane
from actionspan.streaming.messages import Message
from actionspan.streaming.stage import Event as Worked
from actionspan.streaming.stage import Links, Options, Part, Stage
from actionspan.streaming.state import Kept, copied


class DeviceStage(Stage):
    """A stage with its module on a device: it draws from the device's generator too.

    Its seconds in `report` are the host's, which gives the work; its events are the device's.
    """

    captures = True

    def __init__(self, part: Part, options: Options, backend: CudaBackend, lane: Lane) -> None:
        if isinstance(part.module, nn.Module):
            backend.place(part.module, lane.device)
        super().__init__(part, options)
        self._backend, self._lane = backend, lane
        seed = options.seed + part.place.index
        self.random = torch.cat([self.random, backend.seeded(lane.device, seed)])
        self._marks: list[tuple[int, int, str, Event, Event]] = []
        if self.events is not None:
            backend.synchronize()
            self._zero, self._zero_time = backend.mark(lane.compute), time.perf_counter()
        if self.history is not None:
            self.history.get_random, self.history.set_random = self.drawn, self.draw_from

    def drawn(self) -> Tensor:
        """Return the states of the host's and of the device's generator, one after the other."""
        return torch.cat([torch.get_rng_state(), self._backend.random(self._lane.device)])

    def draw_from(self, state: Tensor) -> None:
        """Set the states of `drawn`; of the host's alone if that is all there is."""
        size = len(torch.get_rng_state())
        torch.set_rng_state(state[:size].clone())
        if len(state) > size:
            self._backend.set_random(self._lane.device, state[size:].clone())

    @contextmanager
    def _random(self) -> Iterator[None]:
        outside = self.drawn()
        self.draw_from(self.random)
        try:
            yield
        finally:
            self.random = self.drawn()
            self.draw_from(outside)

    @contextmanager
    def _noted(self, work: str, sample: int) -> Iterator[None]:
        if self.events is None:
            yield
            return
        begin = self._backend.mark(self._lane.compute)
        yield
        end = self._backend.mark(self._lane.compute)
        self._marks.append((self.steps, sample, work, begin, end))

    def work(
        self, arriving: Message, asked: tuple[Message | None, Message | None], links: Links
    ) -> None:
        """Run a step's work on the device, for warm-up and capture, without counting it.

        `asked` are the signal and the target.
        """
        counts = self.steps, self.samples, self.updates, self.sample
        events, self.events = self.events, None
        # A schedule runs on the host, after each replay: a graph would repeat one value for ever.
        schedule = self.updater.schedule if self.updater else None
        if self.updater is not None:
            self.updater.schedule = None
        try:
            self._step(arriving, asked[0], asked[1], links)
        finally:
            self.steps, self.samples, self.updates, self.sample = counts
            self.events = events
            if self.updater is not None:
                self.updater.schedule = schedule

    @contextmanager
    def counted(self, sample: int, *, learned: bool) -> Iterator[None]:
        """Count a step with its work done inside a graph."""
        begun, used = time.perf_counter(), time.thread_time()
        with self._noted("step", sample):
            yield
        self.steps += 1
        self.samples += 1
        if learned and self.updater is not None:
            self.updates += 1
            if self.updater.schedule is not None:
                self.updater.schedule.step()
        self.busy_seconds += time.perf_counter() - begun
        self.cpu_seconds += time.thread_time() - used

    def read_clock(self) -> None:
        """Turn the notes on the device into events; all work is done."""
        for step, sample, work, *marks in self._marks:
            begin, end = (
                self._zero_time + self._backend.seconds(self._zero, mark) for mark in marks
            )
            assert self.events is not None
            self.events.append(Worked(step, sample, work, begin, end))
        self._marks.clear()

    def state_dict(self) -> dict[str, Any]:
        """Return a state on the host that stages of other executors can resume from too.

        The states of the device's random generator have separate keys.
        """
        size = len(torch.get_rng_state())
        state = super().state_dict()
        parts: dict[str, Any] = {"random": self.random[:size], "device_random": self.random[size:]}
        if state["history"] is not None:
            kept = state["history"]["kept"]
            parts["kept_random"] = [each.random[size:] for each in kept if each.random is not None]
            state["history"]["kept"] = [
                each._replace(random=each.random if each.random is None else each.random[:size])
                for each in kept
            ]
        copy: dict[str, Any] = copied(state | parts, "cpu")
        return copy

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from `state_dict`; a stage on CPU has no random states of a device."""
        size = len(torch.get_rng_state())
        drawn = state.get("device_random", self.random[size:])
        super().load_state_dict({**state, "history": self._moved(state)})
        self.random = torch.cat([self.random, drawn])

    def _moved(self, state: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return a history's tensors on the device; random states stay on the host."""
        history = state["history"]
        if history is None:
            return None
        drawn = iter(state.get("kept_random", ()))

        def move(tensor: Tensor) -> Tensor:
            moved = self._backend.empty(tensor, self._lane.device)
            self._backend.copy(moved, tensor)
            return moved

        def move_all(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
            return {name: move(tensor) for name, tensor in tensors.items()}

        kept = [
            each._replace(
                message=each.message._replace(tensors=tuple(map(move, each.message.tensors))),
                buffers=move_all(each.buffers),
                weights=each.weights and move_all(each.weights),
                random=None
                if each.random is None
                else torch.cat([each.random, next(drawn, each.random[:0])]),
            )
            for each in (Kept(*fields) for fields in history["kept"])
        ]
        return {"kept": kept}
