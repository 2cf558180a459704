"""Copies of states, and what the state of a module leaves out."""

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor, nn


def not_in_state(module: Any) -> Iterator[tuple[str, Tensor]]:
    """Yield the buffers that a module's own state leaves out (`persistent=False`)."""
    if isinstance(module, nn.Module):
        known = module.state_dict().keys()
        yield from (each for each in module.named_buffers() if each[0] not in known)


def copied(state: Any) -> Any:
    """Return a state with tensors of its own."""
    if isinstance(state, Tensor):
        return state.detach().clone()
    if isinstance(state, Mapping):
        return {key: copied(value) for key, value in state.items()}
    if isinstance(state, list | tuple):
        return type(state)(copied(value) for value in state)
    return state
