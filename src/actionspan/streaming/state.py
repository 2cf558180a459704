"""The memory of a stage: past inputs until their gradients come, and states to resume from."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from actionspan.streaming.messages import Message, Value, cloned

Tensors = dict[str, Tensor]


class Kept(NamedTuple):
    """An input, and what else its forward pass depended on."""

    step: int
    message: Message
    random: Tensor | None  # torch's random state before it; None: it drew nothing
    buffers: Tensors  # as they were before it
    weights: Tensors | None  # as they saw it; None: the present ones are used


class History:
    """The inputs of the last `delay` steps of a stage, at most.

    A second forward pass on a kept input repeats the first: it draws the same random numbers and
    sees the same buffers, and it leaves the buffers of the module as they are, so that batch norm
    counts each sample once.

    With `weights` the weights that saw an input are kept too; with `random` random numbers are
    repeated: threads share one generator and draw none.
    """

    def __init__(
        self, module: Callable[[Any], Value], delay: int, *, weights: bool, random: bool
    ) -> None:
        self._call, self._delay = module, delay
        self._with_weights, self._random = weights, random
        self._module = module if isinstance(module, nn.Module) else nn.Module()
        self._kept: deque[Kept] = deque()
        self._used: Tensors = {}
        # The state of the generator in use; a device has another one.
        self.get_random: Callable[[], Tensor] = torch.get_rng_state
        self.set_random: Callable[[Tensor], None] = torch.set_rng_state

    def due(self, step: int) -> Kept | None:
        """Take out the input of the gradient that comes at a step."""
        if self._kept and self._kept[0].step == step - self._delay:
            return self._kept.popleft()
        return None

    @contextmanager
    def keeping(self, step: int, message: Message) -> Iterator[None]:
        """Keep the input of the forward pass inside."""
        buffers = {name: buffer.clone() for name, buffer in self._module.named_buffers()}
        before = self.get_random() if self._random else None
        kept = cloned(message)
        yield
        drew = before is not None and not torch.equal(before, self.get_random())
        weights = None
        if self._with_weights:
            # A copy for each input: torch's counts of changes miss fused optimisers, writes through
            # `data`, and what another process writes into shared memory.
            weights = {name: weight.detach().clone() for name, weight in self._named()}
        self._kept.append(Kept(step, kept, before if drew else None, buffers, weights))

    def again(self, kept: Kept, inputs: Value) -> Value:
        """Return the module's output for a kept input."""
        now = self.get_random() if kept.random is not None else None
        if kept.random is not None:
            self.set_random(kept.random)
        try:
            if not isinstance(self._call, nn.Module):
                return self._call(inputs)
            given = {name: buffer.clone() for name, buffer in kept.buffers.items()}
            self._used = {}
            if kept.weights is not None:
                learned = {name: weight.requires_grad for name, weight in self._named()}
                self._used = {
                    name: weight.detach().requires_grad_(learned[name])
                    for name, weight in kept.weights.items()
                }
            output: Value = functional_call(self._call, {**given, **self._used}, (inputs,))
            return output
        finally:
            if now is not None:
                self.set_random(now)

    def deliver(self) -> None:
        """Give the gradients of stashed weights to the parameters of now."""
        if self._used:
            for name, parameter in self._named():
                parameter.grad = self._used[name].grad
            self._used = {}

    def state(self) -> dict[str, Any]:
        """Return all that is kept."""
        return {"kept": list(self._kept)}

    def load(self, state: dict[str, Any]) -> None:
        """Resume from `state`."""
        self._kept = deque(Kept(*kept) for kept in state["kept"])

    def _named(self) -> Iterator[tuple[str, nn.Parameter]]:
        return self._module.named_parameters()


def not_in_state(module: Any) -> Iterator[tuple[str, Tensor]]:
    """Yield the buffers that a module's own state leaves out (`persistent=False`)."""
    if isinstance(module, nn.Module):
        known = module.state_dict().keys()
        yield from (each for each in module.named_buffers() if each[0] not in known)


def copied(state: Any, device: str | None = None, known: dict[int, Tensor] | None = None) -> Any:
    """Return a state with tensors of its own, on a device if one is given.

    A tensor that is in the state several times is copied once.
    """
    known = {} if known is None else known
    if isinstance(state, Tensor):
        if id(state) not in known:
            own = state.detach()
            known[id(state)] = own.to(device, copy=True) if device else own.clone()
        return known[id(state)]
    if isinstance(state, Mapping):
        return {key: copied(value, device, known) for key, value in state.items()}
    if isinstance(state, list | tuple):
        values = [copied(value, device, known) for value in state]
        return type(state)(*values) if hasattr(state, "_fields") else type(state)(values)
    return state


def plain(value: Any) -> Any:
    """Return a state in plain containers, which `torch.load(weights_only=True)` reads."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return (list if isinstance(value, list) else tuple)(map(plain, value))
    return value


def revived_stage(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of a stage with the messages that `plain` unfolded."""
    history = state["history"]
    if history is not None:
        kept = [Kept(step, Message(*message), *rest) for step, message, *rest in history["kept"]]
        history = {**history, "kept": kept}
    links = {name: list(map(revived, state[name])) for name in ("arrived", "signalled")}
    return {**state, **links, "history": history}


def revived(message: Any) -> Message | None:
    """Return a message that `plain` unfolded."""
    return None if message is None else Message(*message)
