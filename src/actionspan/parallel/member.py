"""A rank's part in training: on its own, and what all exchanges have in common."""

import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from actionspan.parallel.averaging import Learner
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
                tensor.detach().copy_(held.view_as(tensor))


@contextmanager
def timed(seconds: dict[str, float], *parts: str) -> Iterator[None]:
    """Add the seconds of a block to the named parts."""
    start = time.perf_counter()
    yield
    taken = time.perf_counter() - start
    for part in parts:
        seconds[part] += taken


class Replica:
    """One rank's part in training a model; this class is for a single process.

    Attributes:
        learners: The models of this process with their optimisers, mostly one.
        rank: This process's number; rank 0 holds all that a checkpoint needs.
        size: Number of processes.
        worker: This rank's number among the workers; None: it only serves.
        workers: Number of workers, which share each batch.
        sums_gradients: Whether the workers' gradients are added up, so that each computes its part
            of the batch's loss. Workers that average models compute the loss of their own rows, as
            if there were no others.
        seconds: Where the time went: `exchange`, waiting for others (t2 of paper 000), in steps and
            between them; `communication`, all of the gradient exchanges (more, where they overlap
            with backward); and `update`, the optimiser.
    """

    rank, size = 0, 1
    worker: int | None = 0
    workers = 1
    sums_gradients = True

    def __init__(self, model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        self.model, self.optimiser = model, optimiser
        self.learners = [Learner(model, optimiser)]
        self.seconds = {"exchange": 0.0, "communication": 0.0, "update": 0.0}

    def share(self, count: int) -> slice:
        """Return this rank's rows of a batch of `count`; perhaps none."""
        return share(count, self.worker, self.workers)

    def accumulating(self) -> AbstractContextManager[None]:
        """Let backward passes in a block add to the gradients, and exchange nothing yet.

        For steps of several passes: the last runs outside the block, and its gradients may travel
        while it runs. A rank may also have no pass outside, or none at all.
        """
        return nullcontext()

    def step(self) -> None:
        """Exchange gradients and update the model, or update it and exchange models."""
        with timed(self.seconds, "update"):
            self.optimiser.step()

    def synchronise(self) -> None:
        """Give all ranks the same parameters and buffers.

        Buffers, such as the running means of batch norm, are the first worker's. Workers
        that average models average them too, or keep their own (`first_buffers`).
        """

    def first_buffers(self) -> AbstractContextManager[None]:
        """Give the model the first worker's buffers in a block, e.g. in validation.

        All ranks enter it after `synchronise`; where buffers are alike, it does nothing.
        """
        return nullcontext()

    def own_state(self) -> Any:
        """Return, on rank 0, what ranks do not share after `synchronise`; None if there is nothing.

        A checkpoint needs it in addition to rank 0's model and optimiser. All ranks call it.
        """
        return None

    def restore_own(self, state: Any) -> None:
        """Go back to an `own_state`; all ranks call it, and rank 0's state counts."""

    def gather(self, value: Any, what: str) -> list[Any]:
        """Return the (small) values of all ranks, in rank order; `what` names them in messages."""
        return [value]

    def report(self) -> dict[str, Any]:
        """Return the exchange's figures other than seconds, such as bytes sent."""
        return {}

    def close(self) -> None:
        """End threads and hooks; every rank calls it."""


class Member(Replica):
    """The common part of a replica among several; arguments as in `make_replica`.

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
        super().__init__(model, optimiser)
        self.name = name or self.name
        self.settings = settings
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
        """Make the exchange's own buffers; all ranks call it."""

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
