"""A model that is trained together with its copies on other ranks.

The training loop is the same whatever the exchange:

    replica = make_replica("ring", model, optimiser, settings, comm)
    for batch in batches:
        optimiser.zero_grad()
        rows = replica.share(len(batch))
        if rows.stop > rows.start:
            (loss of batch[rows] / len(batch)).backward()  # / len(rows): see sums_gradients
        replica.step()
    replica.synchronise()
    replica.close()
"""

import threading
import time
from contextlib import AbstractContextManager
from queue import SimpleQueue
from typing import Any, Protocol, cast

import torch
from torch import nn

from actionspan.parallel.buckets import GradientBuckets
from actionspan.parallel.communicator import PHASES, Communicator, tag_of
from actionspan.parallel.counting import CountingCommunicator
from actionspan.parallel.exchange import make_exchange
from actionspan.parallel.member import AloneReplica, Member, broadcast
from actionspan.parallel.settings import ExchangeName, ParallelSettings


class Replica(Protocol):
    """One rank's part in training a model.

    Attributes:
        rank: This process's number; rank 0 holds all that a checkpoint needs.
        size: How many processes there are.
        worker: Which worker this rank is; None: it only serves.
        workers: How many workers share each batch.
        sums_gradients: Whether the gradients of all workers are added up, so that each computes
            its part of the batch's loss. Workers that average models compute the loss of their
            own rows, as if there were no others.
        seconds: Where the time went: `exchange`, what this rank waited for others (t2 of paper
            000), in steps and between them; `communication`, what the exchanges of gradients took
            in all (more, where they overlap with backward); and `update`, the optimiser.
    """

    rank: int
    size: int
    worker: int | None
    workers: int
    sums_gradients: bool
    optimiser: torch.optim.Optimizer
    seconds: dict[str, float]

    def share(self, count: int) -> slice:
        """Return which rows of a batch of `count` are this rank's; perhaps none."""
        ...

    def step(self) -> None:
        """Exchange gradients and update the model, or update it and exchange models."""
        ...

    def synchronise(self) -> None:
        """Give all ranks the same parameters and buffers.

        Buffers, such as the running means of batch norm, are those of the first worker. Workers
        that average models average them too, or keep their own (`first_buffers`).
        """
        ...

    def first_buffers(self) -> AbstractContextManager[None]:
        """Let the model have the first worker's buffers in a block, e.g. in validation.

        To be entered by all ranks after `synchronise`; where buffers are alike, it does nothing.
        """
        ...

    def own_state(self) -> Any:
        """Return, on rank 0, what ranks do not share after `synchronise`; None where it is nothing.

        A checkpoint needs it beside rank 0's model and optimiser. All ranks call it.
        """
        ...

    def restore_own(self, state: Any) -> None:
        """Go back to what `own_state` returned; all ranks call it, and rank 0's state counts."""
        ...

    def gather(self, value: Any, what: str) -> list[Any]:
        """Return the (small) values of all ranks, in rank order; `what` names them in messages."""
        ...

    def report(self) -> dict[str, Any]:
        """Return what the exchange has to tell beside seconds."""
        ...

    def close(self) -> None:
        """End threads and hooks; every rank calls it."""
        ...


class SynchronousReplica(Member):
    """All ranks add up their gradients in every step and make the same update.

    Buckets are exchanged in the order of the plan, the same on all ranks: on a thread of their own
    while backward still runs (`overlap`), or after it.
    """

    def _start(self) -> None:
        self._counting = CountingCommunicator(self.comm.Dup())
        # what libraries send is not seen
        self._counts = self.name in ("ring", "ps", "ps_worker", "ps_sharded")
        comm = cast(Communicator, self._counting)  # it passes all other calls on
        self.exchange = make_exchange(self.name, comm, self.settings)
        self._error: BaseException | None = None
        self._done = threading.Event()
        self._queue: SimpleQueue[int | None] = SimpleQueue()
        self._gradients = GradientBuckets(
            self.model.parameters(), self.settings.bucket_kib * 1024, self._bucket_ready
        )
        check_tags(self.comm, len(self._gradients.buckets))
        self._filled: dict[int, torch.cuda.Event] = {}
        self._thread: threading.Thread | None = None
        if self.settings.overlap:
            self._thread = threading.Thread(target=self._communicate, name="exchange", daemon=True)
            self._thread.start()

    def step(self) -> None:
        """Wait for the sums of all gradients, then update the model."""
        begun = time.perf_counter()
        self._gradients.fill()
        if self._thread is None:
            for number in range(len(self._gradients.buckets)):
                self._exchange(number)
        else:
            self._done.wait()
            self._done.clear()
            if self._error is not None:
                raise self._error
        self._gradients.hand_out()
        exchanged = time.perf_counter()
        self.optimiser.step()
        self._steps += 1
        self.seconds["exchange"] += exchanged - begun
        self.seconds["update"] += time.perf_counter() - exchanged

    def synchronise(self) -> None:
        """Give all ranks the buffers of the first worker; every step synchronises parameters."""
        begun = time.perf_counter()
        with self.watchdog.waiting("the buffers of the model"):
            broadcast(self.model.buffers(), self.comm, root=self.size - self.workers)
        self.seconds["exchange"] += time.perf_counter() - begun

    def report(self) -> dict[str, Any]:
        """Return the sizes of the buckets and, but for libraries, what this rank sent: bytes."""
        sent = {"sent_bytes": self._counting.total_sent()} if self._counts else {}
        return {"bucket_bytes": [one.flat.nbytes for one in self._gradients.buckets], **sent}

    def close(self) -> None:
        """End the threads and take the hooks off."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
        self._gradients.close()
        self.watchdog.close()
        if hasattr(self.exchange, "close"):
            self.exchange.close()
        self._counting.Free()
        self.comm.Free()

    def _bucket_ready(self, number: int) -> None:
        if self._thread is not None:
            if self._gradients.buckets[number].flat.is_cuda:
                # backward has only queued the copies, on a stream that the other thread has not
                self._filled[number] = torch.cuda.Event()  # type: ignore[no-untyped-call]
                self._filled[number].record()
            self._queue.put(number)

    def _communicate(self) -> None:
        """Exchange buckets in the order of the plan, each as soon as it and those before are here.

        Backward may finish buckets in another order on another rank; the order of the exchanges
        must be one.
        """
        ready: set[int] = set()
        following = 0
        try:
            while (number := self._queue.get()) is not None:
                ready.add(number)
                while following in ready:
                    ready.discard(following)
                    self._exchange(following)
                    following += 1
                if following == len(self._gradients.buckets):
                    following = 0
                    self._done.set()
        except BaseException as error:  # of any kind: the training thread raises it
            self._error = error
            self._done.set()

    def _exchange(self, number: int) -> None:
        begun = time.perf_counter()
        count = len(self._gradients.buckets)
        if number in self._filled:
            self._filled.pop(number).synchronize()
        with self.watchdog.waiting(f"bucket {number + 1} of {count} in step {self._steps + 1}"):
            self.exchange.allreduce(self._gradients.buckets[number].flat, number)
        self.seconds["communication"] += time.perf_counter() - begun


def check_tags(comm: Communicator, buckets: int) -> None:
    """Refuse more buckets than the MPI has message tags for.

    Raises:
        ValueError: There are too many.
    """
    from mpi4py import MPI

    most = comm.Get_attr(MPI.TAG_UB)
    if tag_of(buckets, PHASES[0]) > most:
        raise ValueError(f"{buckets} buckets: this MPI has tags up to {most}; raise bucket_kib")


def make_replica(
    name: ExchangeName,
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    settings: ParallelSettings,
    comm: Communicator | None = None,
) -> Replica:
    """Return this rank's replica of a model; all ranks call it and start with rank 0's values.

    Args:
        name: How gradients, or models, are exchanged.
        model: The model, the same on all ranks.
        optimiser: Of the model's parameters, the same on all ranks.
        settings: Buckets, overlap, wire type and so on.
        comm: An mpi4py communicator; not needed for `none`.

    Raises:
        ValueError: The exchange cannot be had with these settings or ranks; or the optimiser has
            parameters that are not the model's, whose gradients nobody would exchange.
    """
    own = {id(parameter) for parameter in model.parameters()}
    if any(id(one) not in own for group in optimiser.param_groups for one in group["params"]):
        raise ValueError("the optimiser has a parameter that is none of the model's")
    if name == "none":
        return AloneReplica(optimiser)
    assert comm is not None
    if name == "aavg":
        from actionspan.parallel.model_averaging import ModelAveraging

        return ModelAveraging(comm, model, optimiser, settings)
    if name == "periodic":
        from actionspan.parallel.torch_averaging import PeriodicAveraging

        return PeriodicAveraging(comm, model, optimiser, settings)
    if name == "ps_async":
        from actionspan.parallel.async_server import AsyncReplica

        return AsyncReplica(comm, model, optimiser, settings)
    return SynchronousReplica(comm, model, optimiser, settings, name)
