"""The communicator that the engine needs, its waiting, and two without MPI.

It is a small part of `mpi4py.MPI.Comm`: an mpi4py communicator fits as it is, and so do those here
(one counts what passes it, one is of the ranks that torchrun starts) and simulated ones.
"""

import os
import pickle
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any, NoReturn, Protocol, cast

import torch
from torch import Tensor

from actionspan.errors import InputError
from actionspan.lazy import needed

# Each bucket has its own tag for each phase, so that messages cannot be mistaken for one another.
PHASES = ("scatter", "gather", "push", "pull", "control")
_NOTHING = bytearray()  # an empty message


class Request(Protocol):
    """A send or receive under way."""

    def Test(self) -> bool: ...  # make progress; whether it is complete


class PointToPoint(Protocol):
    """The calls of `mpi4py.MPI.Comm` that the ring and the server make; buffers are bytes."""

    def Get_rank(self) -> int: ...
    def Get_size(self) -> int: ...
    def Isend(self, buf: Any, dest: int, tag: int) -> Any: ...  # returns a `Request`
    def Irecv(self, buf: Any, source: int, tag: int) -> Any: ...


class Communicator(PointToPoint, Protocol):
    """All calls of `mpi4py.MPI.Comm` that training on ranks makes.

    Lower-case calls take any small object, by pickle; the others take buffers of bytes.
    """

    def Dup(self) -> Any: ...  # the same ranks, with messages of its own
    def Free(self) -> None: ...
    def Abort(self, errorcode: int) -> Any: ...
    def Get_attr(self, keyval: int) -> Any: ...  # a property of the MPI, e.g. its highest tag
    def Iprobe(self, source: int, tag: int, status: Any) -> bool: ...
    def Recv(self, buf: Any, source: int, tag: int) -> None: ...
    def Bcast(self, buf: Any, root: int) -> None: ...
    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: Any) -> None: ...
    def bcast(self, obj: Any, root: int) -> Any: ...
    def scatter(self, sendobj: Any, root: int) -> Any: ...
    def gather(self, sendobj: Any, root: int) -> Any: ...  # a list on the root, None elsewhere
    def allgather(self, sendobj: Any) -> Any: ...


def settle(tensor: Tensor) -> None:
    """Wait for the work queued on a GPU tensor: MPI does not know streams."""
    if tensor.is_cuda:
        torch.cuda.current_stream(tensor.device).synchronize()


def tag_of(bucket: int, phase: str) -> int:
    """Return the tag of a bucket's messages in a phase."""
    return bucket * len(PHASES) + PHASES.index(phase)


def received_notes(comm: Communicator, tag: int) -> Iterator[int]:
    """Take the notes of one byte that have arrived, and yield the rank of each."""
    if hasattr(comm, "received_notes"):  # not MPI
        yield from comm.received_notes(tag)
        return
    MPI = needed("mpi4py.MPI", "mpi")

    status = MPI.Status()
    while comm.Iprobe(MPI.ANY_SOURCE, tag, status):
        comm.Recv(bytearray(1), status.source, tag)
        yield status.source


def _phase_of(tag: int) -> str:
    """Return the phase of messages with this tag."""
    return PHASES[tag % len(PHASES)]


def as_buffer(block: Tensor) -> Any:
    """Return the bytes of a contiguous 1-D tensor in a form that mpi4py sends without a copy.

    As bytes all types travel alike: MPI knows no bfloat16. The bytes of a GPU tensor need a
    CUDA-aware MPI.
    """
    data = block.view(torch.uint8)
    return data.numpy() if data.device.type == "cpu" else data


class Patience:
    """How long `wait` polls before it sleeps between polls."""

    seconds = 2e-3


def wait(*requests: Request) -> None:
    """Wait for each request, eagerly at first, then ever more politely.

    Between polls the core is offered to others. After `Patience.seconds` the process sleeps for a
    twentieth of the time waited, 1 ms at most: ranks that wait (a parameter server, above all)
    leave the cores to those that compute.
    """
    for request in requests:
        start = time.perf_counter()
        while not request.Test():
            waited = time.perf_counter() - start
            if waited > Patience.seconds:
                time.sleep(min(1e-3, waited / 20))
            else:
                os.sched_yield()


class CountingCommunicator:
    """Passes every call on and counts bytes and messages by peer and phase.

    Counts are exact and the same on every machine, unlike seconds. Bytes that the MPI library sends
    inside its collective calls (`Allreduce`) is not counted.

    Args:
        comm: An mpi4py communicator, or one like it.

    Attributes:
        sent_bytes, sent_messages, received_bytes, received_messages: Counters with keys
            (peer, phase); the phases are `communicator.PHASES`.
    """

    def __init__(self, comm: PointToPoint) -> None:
        self.comm = comm
        self.reset()

    def total_sent(self) -> int:
        """Return the bytes sent to all peers in all phases."""
        return sum(self.sent_bytes.values())

    def reset(self) -> None:
        """Set all counts to zero."""
        self.sent_bytes: Counter[tuple[int, str]] = Counter()
        self.sent_messages: Counter[tuple[int, str]] = Counter()
        self.received_bytes: Counter[tuple[int, str]] = Counter()
        self.received_messages: Counter[tuple[int, str]] = Counter()

    def Isend(self, buf: Any, dest: int, tag: int = 0) -> Any:
        """Count a message and send it."""
        self.count_sent(buf.nbytes, dest, tag)
        return self.comm.Isend(buf, dest, tag)

    def Irecv(self, buf: Any, source: int, tag: int = 0) -> Any:
        """Count a message and receive it."""
        self.count_received(buf.nbytes, source, tag)
        return self.comm.Irecv(buf, source, tag)

    def count_sent(self, length: int, dest: int, tag: int) -> None:
        """Count a message and its bytes to another rank."""
        self.sent_messages[dest, _phase_of(tag)] += 1
        self.sent_bytes[dest, _phase_of(tag)] += length

    def count_received(self, length: int, source: int, tag: int) -> None:
        """Count a message and its bytes from another rank."""
        self.received_messages[source, _phase_of(tag)] += 1
        self.received_bytes[source, _phase_of(tag)] += length

    def __getattr__(self, name: str) -> Any:
        return getattr(self.comm, name)


def lend(comm: PointToPoint, block: Tensor, dest: int, tag: int) -> Request:
    """Notify a rank of the same machine that a block is complete and it may read it in place.

    The message is empty; the block counts as sent.
    """
    if isinstance(comm, CountingCommunicator):
        comm.count_sent(block.nbytes, dest, tag)
        comm = comm.comm
    return cast(Request, comm.Isend(_NOTHING, dest, tag))


def borrow(comm: PointToPoint, block: Tensor, source: int, tag: int) -> Request:
    """Return the request that is complete when a rank has lent a block; it counts as received."""
    if isinstance(comm, CountingCommunicator):
        comm.count_received(block.nbytes, source, tag)
        comm = comm.comm
    return cast(Request, comm.Irecv(_NOTHING, source, tag))


# Longer than any exchange may take: the watchdog ends a job that stalls, torchrun one that fails.
_WAIT = timedelta(days=7)


class Done:
    """A send that is complete."""

    def Test(self) -> bool:
        """Return True."""
        return True


class TorchrunCommunicator:
    """The calls of `mpi4py.MPI.Comm` that gloo and nccl need, for the ranks of torchrun.

    It carries what an exchange needs in addition to its sums (first weights, losses, the watchdog's
    notes), over torch's key-value store; the ring and the servers need MPI.
    Each message is a key of the store, deleted when the last of its readers has it. Collective
    calls match by their order. An attempt of torchrun (`--max-restarts`) sees nothing of the last.
    """

    def __init__(self, name: str = "actionspan") -> None:
        """Connect to torchrun's store; `name` sets this communicator's messages apart."""
        import torch.distributed as distributed

        self._name, self._dups, self._calls = name, 0, 0
        self._sent, self._received = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
        torch_distributed: Any = distributed  # its types lack the functions used here
        meeting = torch_distributed.rendezvous("env://", timeout=_WAIT)
        store, self._rank, self._size = next(meeting)
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        self._store = torch_distributed.PrefixStore(f"{name}/{attempt}", store)
        self._store.set_timeout(_WAIT)

    def Get_rank(self) -> int:
        return int(self._rank)

    def Get_size(self) -> int:
        return int(self._size)

    def Dup(self) -> "TorchrunCommunicator":
        """Return the same ranks with messages and a connection of their own; all ranks call it."""
        self._dups += 1
        return TorchrunCommunicator(f"{self._name}.{self._dups}")

    def Free(self) -> None:
        """Do nothing: the connection ends with the object."""

    def Abort(self, errorcode: int) -> NoReturn:
        """End this process; torchrun then ends the others."""
        sys.stderr.flush()
        os._exit(errorcode)

    def Isend(self, buf: Any, dest: int, tag: int) -> Done:
        number = self._sent[dest, tag]
        self._sent[dest, tag] += 1
        self._store.set(f"{self._rank}>{dest}/{tag}/{number}", bytes(buf))
        return Done()

    def Irecv(self, buf: Any, source: int, tag: int) -> NoReturn:
        """Raise InputError: what receives from a rank needs MPI."""
        raise InputError(
            "torchrun starts ranks for the exchanges gloo and nccl; "
            "start the others with mpiexec -n N python -m mpi4py …"
        )

    def received_notes(self, tag: int) -> Iterator[int]:
        """Take the notes that have arrived, and yield the rank of each."""
        for source in range(self._size):
            while self._store.check([key := self._next_from(source, tag)]):
                self._store.delete_key(key)
                self._received[source, tag] += 1
                yield source

    def _next_from(self, source: int, tag: int) -> str:
        return f"{source}>{self._rank}/{tag}/{self._received[source, tag]}"

    def Bcast(self, buf: Any, root: int) -> None:
        view = memoryview(buf).cast("B")
        data = self.bcast(bytes(view) if self._rank == root else None, root)
        if self._rank != root:
            view[:] = data

    def bcast(self, obj: Any, root: int) -> Any:
        self._calls += 1
        key, readers = f"call/{self._calls}", self._size - 1
        if self._rank == root:
            if readers:
                self._store.set(key, pickle.dumps(obj))
            return obj
        data: bytes = self._store.get(key)
        if readers == 1 or self._store.add(f"{key}/read", 1) == readers:
            self._store.delete_key(key)
            self._store.delete_key(f"{key}/read")
        return pickle.loads(data)

    def scatter(self, sendobj: Any, root: int) -> Any:
        return self.bcast(sendobj, root)[self._rank]

    def gather(self, sendobj: Any, root: int) -> list[Any] | None:
        every = self.allgather(sendobj)
        return every if self._rank == root else None

    def allgather(self, sendobj: Any) -> list[Any]:
        return [self.bcast(sendobj, rank) for rank in range(self._size)]


class Exchange(Protocol):
    """Sums tensors over the workers."""

    def allreduce(self, tensor: Tensor, bucket: int = 0) -> None:
        """Sum a tensor in place; every rank makes the same call and ends with the same bits."""

    def bind(self, tensor: Tensor, bucket: int = 0) -> Callable[[], object]:
        """Return `allreduce` of a tensor that keeps its memory and its shape, for many calls."""
        return partial(self.allreduce, tensor, bucket)
