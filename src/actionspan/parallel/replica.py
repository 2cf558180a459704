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

A step may have several backward passes; all but the last of a rank run in
`with replica.accumulating():`.
"""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from queue import SimpleQueue
from typing import Any, cast

import torch
from torch import nn

from actionspan.parallel.buckets import GradientBuckets
from actionspan.parallel.communicator import PHASES, Communicator, CountingCommunicator, tag_of
from actionspan.parallel.exchange import make_exchange
from actionspan.parallel.member import Member, Replica, broadcast, timed
from actionspan.parallel.model_averaging import ModelAveraging, PeriodicAveraging
from actionspan.parallel.parameter_server import AsyncReplica
from actionspan.parallel.settings import ExchangeName, ParallelSettings
from actionspan.parallel.transfer import zeros


class _SynchronousReplica(Member):
    """All ranks add up their gradients in every step and make the same update.

    Buckets are exchanged in the order of the plan, the same on all ranks: after backward, or
    (`overlap`) on a separate thread while it still runs.
    """

    def _start(self) -> None:
        # the exchange, over a communicator that counts its messages
        self._counting = CountingCommunicator(self.comm.Dup())
        comm = cast(Communicator, self._counting)  # it passes all other calls on
        with self.watchdog.waiting("the place of the buckets"):
            self.exchange = make_exchange(self.name, comm, self.settings)
            # the gradients
            self._gradients = GradientBuckets(
                self.model.parameters(),
                self.settings.bucket_kib * 1024,
                self._bucket_ready,
                getattr(self.exchange, "room", zeros),
            )
        buckets = self._gradients.buckets
        self._calls = [self.exchange.bind(each.flat, k) for k, each in enumerate(buckets)]
        check_tags(self.comm, len(buckets))
        # the thread that exchanges finished buckets while backward runs
        self._error: BaseException | None = None
        self._done = threading.Event()
        self._queue: SimpleQueue[int | None] = SimpleQueue()
        self._filled: dict[int, torch.cuda.Event] = {}
        self._thread: threading.Thread | None = None
        if self.settings.overlap:
            self._thread = threading.Thread(target=self._communicate, name="exchange", daemon=True)
            self._thread.start()

    def accumulating(self) -> AbstractContextManager[None]:
        """Let backward passes in a block add to the gradients, and exchange nothing yet."""
        return self._gradients.accumulating()

    def step(self) -> None:
        """Wait for the sums of all gradients, then update the model."""
        with timed(self.seconds, "exchange"):
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
        with timed(self.seconds, "update"):
            self.optimiser.step()
        self._steps += 1

    def synchronise(self) -> None:
        """Give all ranks the buffers of the first worker; every step synchronises parameters."""
        with self._waiting("the buffers of the model"):
            broadcast(self.model.buffers(), self.comm, root=self.size - self.workers)

    def report(self) -> dict[str, Any]:
        """Return the buckets' bytes and, where no library sends them, the bytes this rank sent."""
        counted = self.name in ("ring", "ps", "ps_worker", "ps_sharded")
        sent = {"sent_bytes": self._counting.total_sent()} if counted else {}
        return {"bucket_bytes": [each.flat.nbytes for each in self._gradients.buckets], **sent}

    def close(self) -> None:
        """End the threads and remove the hooks."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
        self._gradients.close()
        super().close()
        if hasattr(self.exchange, "close"):
            self.exchange.close()
        self._counting.Free()

    def _bucket_ready(self, number: int) -> None:
        if self._thread is not None:
            if self._gradients.buckets[number].flat.is_cuda:
                # backward has only queued the copies, on a stream that the other thread lacks
                self._filled[number] = torch.cuda.Event()  # type: ignore[no-untyped-call]
                self._filled[number].record()
            self._queue.put(number)

    def _communicate(self) -> None:
        """Exchange buckets in the order of the plan, each once it and all before it are complete.

        Backward may finish buckets in a different order on another rank; the order of the exchanges
        must be the same.
        """
        ready: set[int] = set()
        following = 0
        buckets = self._gradients.buckets
        if buckets[0].flat.is_cuda:  # each thread begins with the first GPU
            torch.cuda.set_device(buckets[0].flat.device)
        try:
            while (number := self._queue.get()) is not None:
                ready.add(number)
                while following in ready:
                    ready.discard(following)
                    self._exchange(following)
                    following += 1
                if following == len(buckets):
                    following = 0
                    self._done.set()
        except BaseException as error:  # of any kind: the training thread raises it
            self._error = error
            self._done.set()

    def _exchange(self, number: int) -> None:
        what = f"bucket {number + 1} of {len(self._calls)} in step {self._steps + 1}"
        with timed(self.seconds, "communication"):
            if number in self._filled:
                self._filled.pop(number).synchronize()
            with self.watchdog.waiting(what):
                self._calls[number]()


def check_tags(comm: Communicator, buckets: int) -> None:
    """Raise ValueError for more buckets than the MPI has message tags for."""
    if not hasattr(comm, "Get_attr"):
        return  # torchrun's ranks exchange no buckets themselves
    from mpi4py import MPI

    most = comm.Get_attr(MPI.TAG_UB)
    if tag_of(buckets, PHASES[0]) > most:
        raise ValueError(f"{buckets} buckets: this MPI has tags up to {most}; raise bucket_kib")


_MEMBERS: dict[str, Callable[..., Replica]]
_MEMBERS = {"aavg": ModelAveraging, "periodic": PeriodicAveraging, "ps_async": AsyncReplica}


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
        model: The model, of the same structure on all ranks.
        optimiser: Of the model's parameters, the same on all ranks.
        settings: Buckets, overlap, wire type and so on.
        comm: An mpi4py communicator; not needed for `none`.

    Raises:
        ValueError: The exchange is not possible with these settings or ranks; or the optimiser has
            parameters that do not belong to the model: their gradients would not be exchanged.
    """
    own = {id(parameter) for parameter in model.parameters()}
    if any(id(each) not in own for group in optimiser.param_groups for each in group["params"]):
        raise ValueError("the optimiser has a parameter that does not belong to the model")
    if name == "none":
        return Replica(model, optimiser)
    assert comm is not None
    return _MEMBERS.get(name, _SynchronousReplica)(comm, model, optimiser, settings, name)
