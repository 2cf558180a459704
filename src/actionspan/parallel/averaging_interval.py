"""When learners average, and how their own state is kept: what all kinds of averaging share."""

import contextlib
import copy
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn


class Interval:
    """Counts steps, and tells after which one the models are averaged.

    Args:
        steps: K; -1: only at `synchronise`.

    Attributes:
        averages: How often they were averaged so far.
        since: Steps since then.
    """

    def __init__(self, steps: int) -> None:
        self.steps, self.averages, self.since = steps, 0, 0

    def step(self) -> bool:
        """Count a step; return whether the models are to be averaged after it."""
        self.since += 1
        return self.since == self.steps

    def averaged(self) -> None:
        """Count an average; the next steps are counted anew."""
        self.averages, self.since = self.averages + 1, 0


def own_state(model: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, Any]:
    """Return what averages of parameters leave to each learner; tensors are its own, not copies."""
    return {"optimiser": optimiser.state_dict(), "buffers": list(model.buffers())}


@torch.no_grad()
def restore_own(model: nn.Module, optimiser: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    """Give a learner a copy of what `own_state` returned."""
    optimiser.load_state_dict(copy.deepcopy(state["optimiser"]))
    for buffer, value in zip(model.buffers(), state["buffers"], strict=True):
        buffer.copy_(value)


@contextlib.contextmanager
def kept(buffers: Sequence[Tensor]) -> Iterator[None]:
    """Give tensors their values back after a block that may change them."""
    before = [one.clone() for one in buffers]
    try:
        yield
    finally:
        with torch.no_grad():
            for one, value in zip(buffers, before, strict=True):
                one.copy_(value)
