"""What replicas have in common, and the replica of a single process."""

import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from actionspan.parallel.communicator import Communicator, as_buffer
from actionspan.parallel.settings import SERVED, ExchangeName, ParallelSettings
from actionspan.parallel.watchdog import Watchdog


def share(count: int, worker: int | None, workers: int) -> slice:
    """Return a worker's rows of a batch: contiguous, and at most one more than another's."""
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


@contextmanager
def timed(seconds: dict[str, float], *parts: str) -> Iterator[None]:
    """Add the seconds of a block to the named parts."""
    start = time.perf_counter()
    yield
    taken = time.perf_counter() - start
    for part in parts:
        seconds[part] += taken


class Alike:
    """A replica that shares all its state with the others after `synchronise`."""

    sums_gradients = True

    def __init__(self) -> None:
        self.seconds = {"exchange": 0.0, "communication": 0.0, "update": 0.0}

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
        super().__init__()
        self.optimiser = optimiser

    def share(self, count: int) -> slice:
        """Return all rows."""
        return slice(0, count)

    def step(self) -> None:
        """Update the model."""
        with timed(self.seconds, "update"):
            self.optimiser.step()

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
    """What a replica among several has, whatever its exchange; arguments as in `make_replica`.

    Raises:
        ValueError: The exchange is not possible with these settings, ranks or this model.
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
        super().__init__()
        self.name = name or self.name
        self.model, self.optimiser, self.settings = model, optimiser, settings
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        servers = int(self.name in SERVED)
        self.worker = self.rank - servers if self.rank >= servers else None
        self.workers = self.size - servers
        self._check()
        broadcast([*model.parameters(), *model.buffers()], comm)
        self.comm = comm.Dup()  # for this replica's messages alone
        self.watchdog = Watchdog(self.comm.Dup(), settings.stall_seconds)
        self._steps = 0
        self._start()

    def _check(self) -> None:
        """Raise ValueError where the exchange is not possible, before anything is exchanged."""

    def _start(self) -> None:
        """Make what the exchange needs besides; all ranks come to it."""

    def share(self, count: int) -> slice:
        """Return this rank's rows of a batch of `count`."""
        return share(count, self.worker, self.workers)

    def gather(self, value: Any, what: str) -> list[Any]:
        """Return the values of all ranks, in rank order."""
        with self._waiting(what):
            return list(self.comm.allgather(value))

    def close(self) -> None:
        """Stop watching."""
        self.watchdog.close()
        self.comm.Free()

    @contextmanager
    def _waiting(self, what: str, *parts: str, patience: float = 0.0) -> Iterator[None]:
        """Watch and time a block that waits for other ranks (see `Watchdog.waiting`)."""
        with timed(self.seconds, "exchange", *parts), self.watchdog.waiting(what, patience):
            yield
