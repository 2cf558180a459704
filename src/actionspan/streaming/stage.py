"""One stage of a pipeline: its work in one step, whoever runs it.

With h counted from 0 and D stages, stage h holds sample t - h at step t, and the gradient that
reaches it belongs to the loss of sample t + h - 2D + 2 (docs/method.md has the table).
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from actionspan.streaming.errors import StageError
from actionspan.streaming.learning import Learning, Updater
from actionspan.streaming.messages import Form, Message, Value, check_form, message_of
from actionspan.streaming.state import History, Kept, copied, not_in_state

Module = Callable[[Any], Value]
_EVENTS = 100_000  # noted at most, the last ones: streams may have no end
Random = Literal["swapped", "process", "none"]
COUNTS = ("steps", "samples", "updates", "sample", "busy_seconds", "cpu_seconds")


class Links(Protocol):
    """Where a stage sends its output: the next stage, the one before, or whoever asked."""

    def output(self, message: Message | None, loss: Tensor | None) -> None:
        """Send the output to the right; the last stage adds its loss."""

    def gradient(self, message: Message | None) -> None:
        """Send the gradient of the input to the left."""


@dataclass(frozen=True)
class Place:
    """Which stage it is, and whether parameters of it or before it learn."""

    index: int
    stages: int
    learns: bool = False
    passes_back: bool = False  # a stage before it learns

    def __str__(self) -> str:
        return f"stage {self.index + 1} of {self.stages}"

    @property
    def last(self) -> bool:
        """Whether it answers."""
        return self.index == self.stages - 1

    @property
    def delay(self) -> int:
        """Steps from an input to the gradient of its loss: 2 (D - h) of the paper."""
        return 2 * (self.stages - 1 - self.index)


class Part(NamedTuple):
    """A module with its place and how it learns; None: it does not."""

    module: Module
    place: Place
    learning: Learning | None


class Options(NamedTuple):
    """What holds for all stages; see `Pipeline`."""

    seed: int = 0
    threads: int = 1
    stall_seconds: float = 60.0
    record: bool = False


class Event(NamedTuple):
    """Work on a sample, for timelines; seconds of the clock that all processes share."""

    step: int
    sample: int
    work: str  # forward, backward or update
    begin: float
    end: float


class Stage:
    """A module with its place, its optimiser, its inputs and its random numbers.

    Args:
        part: Its computation; a callable other than an `nn.Module` has no parameters.
        options: Its seed is for stage 0; stage h has `seed + h`.
        random: The generator that it draws from: `swapped` exchanges torch's state for its own
            round its work, as several stages in one thread must; `process` has the process for
            itself; `none` draws none, as threads share one generator.
    """

    captures = False  # whether it is on a device that has graphs

    def __init__(self, part: Part, options: Options, random: Random = "swapped") -> None:
        module, place, learning = self.module, self.place, self.learning = part
        self.steps = self.samples = self.updates = 0
        self.busy_seconds = self.cpu_seconds = 0.0
        self.sample = -1  # the one it holds
        self.events: deque[Event] | None = deque(maxlen=_EVENTS) if options.record else None
        self._random_of = random
        self.random = torch.Generator().manual_seed(options.seed + place.index).get_state()
        self.updater: Updater | None = None
        self.history: History | None = None
        if learning is not None:
            learned = trainable(module)
            if learned:
                self.updater = Updater(learned, learning, captures=self.captures)
            if learning.gradients != "paper" and place.delay and place.learns:
                stash, draws = learning.gradients == "stash", random != "none"
                self.history = History(module, place.delay, weights=stash, random=draws)
        self._forms: dict[str, Form] = {}
        # A module that writes into its input would write into what its neighbour still needs.
        self._writes = any(getattr(part, "inplace", False) for part in parts_of(module))

    def step(
        self, arriving: Message | None, signal: Message | None, target: Message | None, links: Links
    ) -> None:
        """Do one step: forward, backward, update, and send what comes of it.

        Args:
            arriving: The sample that the left neighbour, or the stream, sent a step ago.
            signal: The gradient that the right neighbour sent a step ago.
            target: Of the sample that arrives, for the last stage.
            links: Gets the output as soon as it is there, then the gradient, each before the
                parameters change.
        """
        self.sample = arriving.sample if arriving else -1
        begun, used = time.perf_counter(), time.thread_time()
        with self._random():
            self._step(arriving, signal, target, links)
        self.steps += 1
        self.busy_seconds += time.perf_counter() - begun
        self.cpu_seconds += time.thread_time() - used

    def _step(
        self, arriving: Message | None, signal: Message | None, target: Message | None, links: Links
    ) -> None:
        if self.history is not None:
            due = self.history.due(self.steps)
            sent = None
            if arriving is not None:
                with self.history.keeping(self.steps, arriving):
                    _, sent = self._forward(arriving, arriving.tensors, gradient=False)
            links.output(sent, None)
            self._learn_from(due, signal, links)
            return
        if arriving is None:  # in the paper's mode a gradient without an input is dropped
            links.output(None, None)
            links.gradient(None)
            return
        asked = target if self.place.last else signal
        learns = self.place.learns and asked is not None
        inputs = self._leaves(arriving) if learns else arriving.tensors
        output, sent = self._forward(arriving, inputs, gradient=learns)
        loss = None
        if self.place.last and target is not None:
            assert self.learning is not None
            with torch.set_grad_enabled(learns):
                loss = self.learning.loss(output, target.value)
        links.output(sent, None if loss is None else loss.detach())
        if not learns:
            links.gradient(None)
        elif loss is not None:
            self._backward(arriving.sample, (loss,), None, inputs, links)
        else:
            assert signal is not None
            self._backward(signal.sample, _tensors(output), signal, inputs, links)

    def _forward(
        self, arriving: Message, inputs: tuple[Tensor, ...], *, gradient: bool
    ) -> tuple[Value, Message]:
        """Return the module's output for a sample, and its message."""
        with self._noted("forward", arriving.sample), torch.set_grad_enabled(gradient):
            if self._writes:
                inputs = tuple(tensor.clone() for tensor in inputs)
            output = self.module(inputs[0] if arriving.alone else inputs)
        self.samples += 1
        sent = message_of(arriving.sample, output, "the output")
        check_form(self._forms, "output", sent, f"the output for sample {arriving.sample}")
        return output, sent

    def _learn_from(self, kept: Kept | None, signal: Message | None, links: Links) -> None:
        """Run forward once more on a kept input, then backward and update."""
        if kept is None or signal is None:
            links.gradient(None)
            return
        assert self.history is not None
        self.sample = kept.message.sample
        inputs = self._leaves(kept.message)
        given = tuple(t.clone() for t in inputs) if self._writes else inputs
        with self._noted("forward", kept.message.sample), torch.enable_grad():
            output = self.history.again(kept, given[0] if kept.message.alone else given)
        self._backward(signal.sample, _tensors(output), signal, inputs, links)

    def _backward(
        self,
        sample: int,
        outputs: tuple[Tensor, ...],
        signal: Message | None,
        inputs: tuple[Tensor, ...],
        links: Links,
    ) -> None:
        """Send the gradient of the inputs to the left, then update the parameters."""
        with self._noted("backward", sample):
            if signal is None:
                torch.autograd.backward(outputs)
            else:
                floating = [output for output in outputs if output.is_floating_point()]
                pairs = [
                    (output, gradient)
                    for output, gradient in zip(floating, signal.tensors, strict=True)
                    if output.requires_grad
                ]
                if pairs:
                    torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
            if self.history is not None:
                self.history.deliver()
        if self.place.passes_back:
            gradients = tuple(
                torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
                for leaf in inputs
                if leaf.is_floating_point()
            )
            links.gradient(Message(sample, gradients, False))
        else:
            links.gradient(None)
        if self.updater is not None:
            with self._noted("update", sample):
                self.updater.update()
            self.updates += 1

    def _leaves(self, message: Message) -> tuple[Tensor, ...]:
        """Return the tensors of a message, tensors of numbers as leaves that want a gradient."""
        return tuple(
            tensor.detach().requires_grad_(tensor.is_floating_point() and self.place.passes_back)
            for tensor in message.tensors
        )

    @contextmanager
    def _random(self) -> Iterator[None]:
        if self._random_of != "swapped":
            yield
            return
        outside = torch.get_rng_state()
        torch.set_rng_state(self.random)
        try:
            yield
        finally:
            self.random = torch.get_rng_state()
            torch.set_rng_state(outside)

    @contextmanager
    def _noted(self, work: str, sample: int) -> Iterator[None]:
        begin = time.perf_counter() if self.events is not None else 0.0
        yield
        if self.events is not None:
            self.events.append(Event(self.steps, sample, work, begin, time.perf_counter()))

    def train(self, training: bool) -> None:
        """Set the module's mode."""
        if isinstance(self.module, nn.Module):
            self.module.train(training)

    def counts(self) -> list[float]:
        """Return `COUNTS`: its work so far, and the time of it."""
        return [float(getattr(self, name)) for name in COUNTS]

    def report(self) -> dict[str, Any]:
        """Return the same by name, and its events."""
        return {name: getattr(self, name) for name in COUNTS} | {"events": list(self.events or [])}

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of all that the next step depends on, except messages on the links."""
        module, updater = self.module, self.updater
        schedule = updater.schedule if updater else None
        own = self._random_of == "process"
        return {
            "steps": self.steps,
            "samples": self.samples,
            "updates": self.updates,
            "module": copied(module.state_dict()) if isinstance(module, nn.Module) else {},
            "buffers": copied(dict(not_in_state(module))),
            "training": [part.training for part in parts_of(module)],
            "optimiser": copied(updater.optimiser.state_dict()) if updater else None,
            "schedule": dict(schedule.state_dict()) if schedule else None,
            "random": torch.get_rng_state() if own else self.random.clone(),
            "history": self.history.state() if self.history else None,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from `state_dict`."""
        for count in ("steps", "samples", "updates"):
            setattr(self, count, state[count])
        if isinstance(self.module, nn.Module):
            self.module.load_state_dict(state["module"])
            for name, buffer in not_in_state(self.module):
                buffer.copy_(state["buffers"][name])
            for part, training in zip(parts_of(self.module), state["training"], strict=True):
                part.training = training
        if self.updater is not None:
            self.updater.load(copied(state["optimiser"]), state["schedule"])
        self.random = state["random"].clone()
        if self._random_of == "process":
            torch.set_rng_state(self.random)
        if self.history is not None:
            self.history.load(state["history"])


def error_of(stage: Stage, error: BaseException) -> StageError:
    """Return what went wrong in a stage, with its place and sample; its cause is the error."""
    what, place = f"{type(error).__name__}: {error}", stage.place
    failure = StageError(place.index, place.stages, stage.sample, what)
    failure.__cause__ = error
    return failure


def trainable(module: Module) -> list[nn.Parameter]:
    """Return the parameters that learn."""
    if not isinstance(module, nn.Module):
        return []
    return [parameter for parameter in module.parameters() if parameter.requires_grad]


def parts_of(module: Module) -> list[nn.Module]:
    """Return a module and all inside it."""
    return list(module.modules()) if isinstance(module, nn.Module) else []


def _tensors(value: Value) -> tuple[Tensor, ...]:
    return (value,) if isinstance(value, Tensor) else tuple(value)
