"""What the engine needs of a communicator, and how it waits.

It is a small part of `mpi4py.MPI.Comm`, so that an mpi4py communicator can be passed as it is, and
so can the counting and the simulated ones.
"""

import os
import time
from typing import Any, Protocol

import torch
from torch import Tensor

# Each bucket has a tag of its own for each phase, so that no message can be taken for another.
PHASES = ("scatter", "gather", "push", "pull", "control")


class Request(Protocol):
    """A send or receive under way."""

    def Test(self) -> bool:  # noqa: N802 - mpi4py's name
        """Return whether it is complete, and move it forward."""
        ...


class PointToPoint(Protocol):
    """The calls of `mpi4py.MPI.Comm` that the ring and the server make; buffers are bytes."""

    def Get_rank(self) -> int:  # noqa: N802
        """Return this process's number, 0…size - 1."""
        ...

    def Get_size(self) -> int:  # noqa: N802
        """Return how many processes there are."""
        ...

    def Isend(self, buf: Any, dest: int, tag: int) -> Any:  # noqa: N802
        """Start to send a buffer; return a `Request`."""
        ...

    def Irecv(self, buf: Any, source: int, tag: int) -> Any:  # noqa: N802
        """Start to receive into a buffer; return a `Request`."""
        ...


class Communicator(PointToPoint, Protocol):
    """All calls of `mpi4py.MPI.Comm` that training on ranks makes.

    In lower case they pass any small value on, by pickle; in upper case buffers of bytes.
    """

    def Dup(self) -> Any:  # noqa: N802
        """Return a communicator of the same ranks, whose messages do not meet these."""
        ...

    def Free(self) -> None:  # noqa: N802
        """End it; all ranks call it."""
        ...

    def Abort(self, errorcode: int) -> Any:  # noqa: N802
        """End the job."""
        ...

    def Get_attr(self, keyval: int) -> Any:  # noqa: N802
        """Return a property of the MPI, e.g. its highest tag."""
        ...

    def Iprobe(self, source: int, tag: int, status: Any) -> bool:  # noqa: N802
        """Return whether a message is there, and fill `status` with its source."""
        ...

    def Recv(self, buf: Any, source: int, tag: int) -> None:  # noqa: N802
        """Receive into a buffer."""
        ...

    def Bcast(self, buf: Any, root: int) -> None:  # noqa: N802
        """Give all ranks the buffer of one."""
        ...

    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: Any) -> None:  # noqa: N802
        """Sum buffers over the ranks."""
        ...

    def bcast(self, obj: Any, root: int) -> Any:
        """Return the value of one rank on all."""
        ...

    def scatter(self, sendobj: Any, root: int) -> Any:
        """Return this rank's of the values that one rank has for each."""
        ...

    def gather(self, sendobj: Any, root: int) -> Any:
        """Return the values of all ranks on one, None on the others."""
        ...

    def allgather(self, sendobj: Any) -> Any:
        """Return the values of all ranks."""
        ...


def settle(tensor: Tensor) -> None:
    """Wait until what was queued for a GPU tensor is done: MPI knows nothing of streams."""
    if tensor.is_cuda:
        torch.cuda.current_stream(tensor.device).synchronize()


def tag_of(bucket: int, phase: str) -> int:
    """Return the tag of a bucket's messages in a phase."""
    return bucket * len(PHASES) + PHASES.index(phase)


def phase_of(tag: int) -> str:
    """Return the phase whose messages carry this tag."""
    return PHASES[tag % len(PHASES)]


def as_buffer(block: Tensor) -> Any:
    """Return a contiguous 1-D tensor as something mpi4py sends without a copy.

    It becomes its bytes, so that every type travels alike (MPI knows no bfloat16). Only a
    CUDA-aware MPI can take those of a GPU tensor.
    """
    data = block.view(torch.uint8)
    return data.numpy() if data.device.type == "cpu" else data


class Patience:
    """How long `wait` asks again and again before it sleeps between questions."""

    seconds = 2e-3


def wait(request: Request) -> None:
    """Wait for a request, eagerly at first, then ever more politely.

    Between questions the core is offered to others, and after `Patience.seconds` the process
    sleeps for a twentieth of the time waited, 1 ms at most: ranks that wait (a parameter server,
    above all) leave the cores to those that compute.
    """
    if request.Test():
        return
    begun = time.perf_counter()
    while not request.Test():
        waited = time.perf_counter() - begun
        if waited > Patience.seconds:
            time.sleep(min(1e-3, waited / 20))
        else:
            os.sched_yield()
