"""What the engine needs of a communicator, and how it waits.

It is a small part of `mpi4py.MPI.Comm`: an mpi4py communicator fits as it is, and so do the
counting and the simulated ones.
"""

import os
import time
from collections.abc import Iterator
from typing import Any, Protocol

import torch
from torch import Tensor

# Each bucket has its own tag for each phase, so that messages cannot be mistaken for one another.
PHASES = ("scatter", "gather", "push", "pull", "control")


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
    """Wait for what is queued on a GPU tensor: MPI knows nothing of streams."""
    if tensor.is_cuda:
        torch.cuda.current_stream(tensor.device).synchronize()


def tag_of(bucket: int, phase: str) -> int:
    """Return the tag of a bucket's messages in a phase."""
    return bucket * len(PHASES) + PHASES.index(phase)


def told_by(comm: Communicator, tag: int) -> Iterator[int]:
    """Yield the ranks whose notes of one byte have arrived, once for each, and take the notes."""
    if hasattr(comm, "told_by"):  # not MPI
        yield from comm.told_by(tag)
        return
    from mpi4py import MPI

    status = MPI.Status()
    while comm.Iprobe(MPI.ANY_SOURCE, tag, status):
        comm.Recv(bytearray(1), status.source, tag)
        yield status.source


def phase_of(tag: int) -> str:
    """Return the phase whose messages carry this tag."""
    return PHASES[tag % len(PHASES)]


def as_buffer(block: Tensor) -> Any:
    """Return the bytes of a contiguous 1-D tensor in a form that mpi4py sends without a copy.

    As bytes all types travel alike: MPI knows no bfloat16. Those of a GPU tensor need a CUDA-aware
    MPI.
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
