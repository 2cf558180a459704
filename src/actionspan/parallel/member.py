"""What replicas have in common, and the one that is alone."""

import time
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from actionspan.parallel.communicator import Communicator, as_buffer
from actionspan.parallel.exchange import role
from actionspan.parallel.settings import ExchangeName, ParallelSettings
from actionspan.parallel.watchdog import Watchdog


def share(count: int, worker: int | None, workers: int) -> slice:
    """Return a worker's rows of a batch: contiguous, and one more than another's at most."""
    if worker is None:
        return slice(0, 0)
    return slice(count * worker // workers, count * (worker + 1) // workers)


def broadcast(tensors: Iterable[Tensor], comm: Communicator, root: int = 0) -> None:
    """Give all ranks the values of rank `root`."""
    for tensor in tensors:
        held = tensor.detach().to("cpu").contiguous().view(-1)
        if len(held):
            comm.Bcast(as_buffer(held), root=root)
            if held.data_ptr() != tensor.data_ptr():
                with torch.no_grad():
                    tensor.copy_(held.view_as(tensor))


class Alike:
    """What replicas have whose ranks share all state after `synchronise`."""

    sums_gradients = True

    def first_buffers(self) -> AbstractContextManager[None]:
        """Do nothing: all ranks have them."""
        return nullcontext()

    def own_state(self) -> Any:
        """Return None: there is no such state."""
        return None

    def restore_own(self, state: Any) -> None:
        """Do nothing: there is no such state."""


class AloneReplica(Alike):
    """A replica without others: a step is the optimiser's."""

    rank, size = 0, 1
    worker: int | None = 0
    workers = 1

    def __init__(self, optimiser: torch.optim.Optimizer) -> None:
        self.optimiser = optimiser
        self.seconds = {"exchange": 0.0, "communication": 0.0, "update": 0.0}

    def share(self, count: int) -> slice:
        """Return all rows."""
        return slice(0, count)

    def step(self) -> None:
        """Update the model."""
        begun = time.perf_counter()
        self.optimiser.step()
        self.seconds["update"] += time.perf_counter() - begun

    def synchronise(self) -> None:
        """Do nothing: there are no others."""

    def gather(self, value: Any, what: str) -> list[Any]:
        """Return the value of the only rank."""
        return [value]

    def report(self) -> dict[str, Any]:
        """Return nothing."""
        return {}

    def close(self) -> None:
        """Do nothing."""


class Member(Alike):
    """What a replica among several has, whatever its exchange.

    Args:
        comm: The ranks, an mpi4py communicator.
        model: The model, alike on all ranks; it begins with rank 0's values.
        optimiser: Of the model's parameters, alike on all ranks.
        settings: Of the exchange.
        name: Of the exchange, where the class has several.

    Raises:
        ValueError: The exchange cannot be had with these settings, ranks or this model.
    """

    name: ExchangeName

    def __init__(
        self,
        comm: Communicator,
        model: nn.Module,
        optimiser: torch.optim.Optimizer,
        settings: ParallelSettings,
        name: ExchangeName | None = None,
    ) -> None:
        self.name = name or self.name
        self.model, self.optimiser, self.settings = model, optimiser, settings
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        self.worker, self.workers = role(self.name, self.rank, self.size)
        self._check()
        broadcast([*model.parameters(), *model.buffers()], comm)
        self.comm = comm.Dup()  # whose messages nobody else uses
        self.seconds = {"exchange": 0.0, "communication": 0.0, "update": 0.0}
        self.watchdog = Watchdog(self.comm.Dup(), settings.stall_seconds)
        self._steps = 0
        self._start()

    def _check(self) -> None:
        """Raise ValueError where the exchange cannot be had; before anything is exchanged."""

    def _start(self) -> None:
        """Make what the exchange needs beside this; all ranks come to it."""

    def share(self, count: int) -> slice:
        """Return which rows of a batch of `count` are this rank's."""
        return share(count, self.worker, self.workers)

    def gather(self, value: Any, what: str) -> list[Any]:
        """Return the values of all ranks, in rank order."""
        begun = time.perf_counter()
        with self.watchdog.waiting(what):
            values = list(self.comm.allgather(value))
        self.seconds["exchange"] += time.perf_counter() - begun
        return values
