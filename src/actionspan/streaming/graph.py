"""The steps of each stage as two CUDA graphs, of even and of odd steps: one launch a step.

Each stage goes through three phases, on its own:

    fill         no full step yet    as the executor `stream` does it, but through fixed places
    first step   its first full one  the same; the optimiser makes its state, which no graph may do
    from then    warm-up, put back what that changed, capture both graphs; then replay them in turn

A step that is not full (no target, the drain) is done like one of the fill.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from actionspan.streaming.cuda import StreamExecutor
from actionspan.streaming.device import Graph
from actionspan.streaming.device_stage import DeviceStage
from actionspan.streaming.errors import CaptureError
from actionspan.streaming.messages import Ends, Message
from actionspan.streaming.slots import SlotAnswers, SlotLink
from actionspan.streaming.sockets import module_tensors
from actionspan.streaming.stage import Options, Part, parts_of

_WARM_UP = 3  # steps; libraries choose their kernels and take their workspaces
_INSTEAD = 'use executor "stream"'


class _Captured(NamedTuple):
    """The graphs of even and odd steps, and the tensors that they write."""

    graphs: list[Graph]
    alone: bool  # the output is a bare tensor
    has_loss: bool
    returns: bool  # a gradient to the left


class _Writing:
    """Links that only copy into places: the part of sending that a graph may hold."""

    def __init__(self, ends: Ends, number: int, learning: bool) -> None:
        self._ends, self._number = ends, number
        self._sent = number + 1 if learning else number  # see `slots`
        self.alone = self.has_loss = self.returns = False

    def output(self, message: Message | None, loss: Tensor | None) -> None:
        assert message is not None
        self.alone, self.has_loss = message.alone, loss is not None
        right = self._ends.right
        number = self._number if isinstance(right, SlotAnswers) else self._sent
        right.fill(number, message.tensors, loss)

    def gradient(self, message: Message | None) -> None:
        self.returns = message is not None
        if self._ends.back and message is not None:
            self._ends.back.fill(self._sent, message.tensors)


class GraphExecutor(StreamExecutor):
    """Runs the stages on GPUs; each replays a graph of its step once the pipeline is full.

    The work of a graph is fixed at its capture: change a learning rate by `fill_`, modes by the
    pipeline's `train` and `eval`, and weights in place.

    Raises:
        ValueError: The machine has no GPU, or a stage does what no graph can repeat.
    """

    name = "graph"
    link = SlotLink
    answering = SlotAnswers

    def __init__(
        self,
        parts: Sequence[Part],
        options: Options,
        devices: Sequence[torch.device | str] | None = None,
    ) -> None:
        super().__init__(parts, options, devices)
        for stage in self.stages:
            _refuse(stage)
        self._own_rates()
        self._captured: dict[int, _Captured] = {}
        self._begun: set[int] = set()  # stages with a first full step done
        self._number = 0  # of the step, which decides which places are read

    def feed(self, arriving: Message | None, target: Message | None) -> None:
        super().feed(arriving, target)
        self._number += 1

    def _run(
        self, index: int, arriving: Message | None, signal: Message | None, target: Message | None
    ) -> None:
        """Replay the graph of this step, or do the work as `stream` does."""
        stage, ends = self.stages[index], self._ends[index]
        full = arriving is not None and _full(stage, signal, target)
        if arriving is None or not full or index not in self._begun:
            super()._run(index, arriving, signal, target)
            if full:
                self._begun.add(index)
            return
        ends.right.open(has_loss=target is not None)
        if ends.back:
            ends.back.open()
        if index not in self._captured:
            self._captured[index] = self._capture(index)
        done = self._captured[index]
        with stage.counted(arriving.sample, learned=stage.place.learns):
            self._backend.replay(done.graphs[self._number % 2])
        written = self._backend.record(self.lanes[index].compute)
        output = Message(arriving.sample, (), done.alone)
        ends.right.post(output, written, has_loss=done.has_loss)
        if ends.back:
            sample = signal.sample if signal is not None else arriving.sample
            gradient = Message(sample, (), False) if done.returns else None
            ends.back.post(gradient, written)

    def _capture(self, index: int) -> _Captured:
        """Return the graphs of a stage, and leave its weights and states as they were."""
        stage, now = self.stages[index], self._number % 2
        links = [_Writing(self._ends[index], number, self._learning) for number in (0, 1)]
        works = [partial(self._work, index, number, links[number]) for number in (0, 1)]
        try:
            # Only the places of this step hold a sample; both graphs do the same kinds of work.
            self._warm_up(stage, works[now])
            graphs = self._backend.capture(self.lanes[index].compute, works)
        except CaptureError:
            raise
        except Exception as error:
            why = str(error).strip().splitlines() or [""]
            raise _refusal(stage, f"{type(error).__name__}: {why[0]}") from error
        done = links[now]
        return _Captured(graphs, done.alone, done.has_loss, done.returns)

    def _work(self, index: int, number: int, links: _Writing) -> None:
        """Do the work of a step that reads the places of a number."""
        stage, ends = self.stages[index], self._ends[index]
        signal = target = None
        if ends.signals and stage.place.learns:
            signal = ends.signals.at(number)
        if ends.targets:
            target = ends.targets.at(number)
        stage.work(ends.left.at(number), (signal, target), links)

    def _warm_up(self, stage: DeviceStage, work: "partial[None]") -> None:
        """Do the work some times, on the stream of the capture, and undo its changes."""
        tensors, numbers = _tensors_of(stage), _numbers_of(stage)
        where = [(id(tensor), tensor.data_ptr()) for tensor in tensors]
        before = [tensor.detach().clone() for tensor in tensors]
        random = stage.drawn()
        try:
            for _ in range(_WARM_UP):
                work()
            drew = not torch.equal(random, stage.drawn())
        finally:
            for tensor, value in zip(tensors, before, strict=True):
                tensor.detach().copy_(value)
            stage.draw_from(random)
        if drew:
            raise _refusal(stage, "it draws random numbers, and graphs would share their state")
        if where != [(id(tensor), tensor.data_ptr()) for tensor in _tensors_of(stage)]:
            raise _refusal(stage, "it replaces a buffer or a state instead of writing into it")
        if numbers != _numbers_of(stage):
            raise _refusal(stage, "its optimiser counts on the host, which a graph does not repeat")

    def _own_rates(self) -> None:
        """Put learning rates on the device, one for each stage, where its schedule changes them."""
        for stage, lane in zip(self.stages, self.lanes, strict=True):
            groups = stage.updater.optimiser.param_groups if stage.updater else []
            for group in groups:
                if "lr" in group:
                    given = torch.as_tensor(group["lr"])
                    group["lr"] = self._backend.static(given, lane.device)
                    self._backend.copy(group["lr"], given)
        self._backend.synchronize()

    def train(self, stage: int, training: bool) -> None:
        """Set the mode of a stage; its graphs are captured again."""
        super().train(stage, training)
        _refuse(self.stages[stage])
        self._captured.pop(stage, None)

    def load(self, states: list[dict[str, Any]]) -> None:
        """Resume from `states`; optimisers have other tensors now, so all is captured again."""
        super().load(states)
        self._captured.clear()
        self._begun.clear()
        self._own_rates()

    def close(self, *, failed: bool = False) -> None:
        super().close(failed=failed)
        self._captured.clear()


def _full(stage: DeviceStage, signal: Message | None, target: Message | None) -> bool:
    """Return whether a stage that has a sample has all else that a step can have."""
    if stage.learning is None:
        return True
    if stage.place.last:
        return target is not None
    return signal is not None or not stage.place.learns


def _tensors_of(stage: DeviceStage) -> list[Tensor]:
    """Return all tensors that a step changes in place."""
    tensors = module_tensors(stage.module)
    if stage.updater is not None:
        optimiser = stage.updater.optimiser
        for values in [*optimiser.state.values(), *optimiser.param_groups]:
            tensors += [value for value in values.values() if isinstance(value, Tensor)]
    return tensors


def _numbers_of(stage: DeviceStage) -> list[Any]:
    """Return the plain values of an optimiser's state."""
    if stage.updater is None:
        return []
    return [
        value
        for values in stage.updater.optimiser.state.values()
        for value in values.values()
        if not isinstance(value, Tensor)
    ]


def _refusal(stage: DeviceStage, why: str) -> CaptureError:
    place = stage.place
    what = f"it cannot be a graph: {why}; {_INSTEAD}"
    return CaptureError(place.index, place.stages, stage.sample, what)


def _refuse(stage: DeviceStage) -> None:
    """Refuse kept inputs, active dropout and optimisers that need the host."""
    name = str(stage.place)
    if stage.history is not None:
        assert stage.learning is not None
        raise ValueError(
            f'{name}: gradients "{stage.learning.gradients}" need inputs of past steps, at '
            f'addresses that a graph cannot follow; use gradients "paper", or {_INSTEAD}'
        )
    for part in parts_of(stage.module):
        if isinstance(part, torch.nn.modules.dropout._DropoutNd) and part.training and part.p > 0:
            raise ValueError(
                f"{name} has active dropout: graphs that run at once would share the state of the "
                f"random generator; {_INSTEAD}, or eval()"
            )
    if stage.updater is None:
        return
    optimiser = stage.updater.optimiser
    kind = type(optimiser).__name__
    for group in optimiser.param_groups:
        if not group.get("capturable", True):
            raise ValueError(f"{name}: a graph needs {kind}(..., capturable=True), or {_INSTEAD}")
        if not isinstance(group.get("lr", torch.empty(0)), Tensor):
            raise ValueError(
                f"{name}: a graph needs {kind}(..., lr=torch.tensor({group['lr']})), as it would "
                f"repeat a number for ever; or {_INSTEAD}"
            )
        if isinstance(optimiser, torch.optim.SGD) and not group["fused"]:
            raise ValueError(
                f"{name}: a graph needs {kind}(..., fused=True), as the host would read the "
                f"learning rate otherwise; or {_INSTEAD}"
            )
