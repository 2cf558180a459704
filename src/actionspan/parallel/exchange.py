"""The one place where an exchange is chosen by its name."""

from typing import Protocol

import torch
from torch import Tensor

from actionspan.parallel.collective import MpiAllreduce, TorchAllreduce
from actionspan.parallel.communicator import Communicator
from actionspan.parallel.parameter_server import ParameterServer
from actionspan.parallel.ring import ring_allreduce
from actionspan.parallel.settings import SERVED, ExchangeName, ParallelSettings


class Exchange(Protocol):
    """Sums tensors over the workers."""

    def allreduce(self, tensor: Tensor, bucket: int = 0) -> None:
        """Sum a tensor in place; every rank calls it alike and ends with the same bits."""
        ...


class RingExchange:
    """`ring_allreduce` with its settings at hand."""

    def __init__(self, comm: Communicator, wire: torch.dtype | None, cuda_aware: bool) -> None:
        self.comm, self.wire, self.cuda_aware = comm, wire, cuda_aware

    def allreduce(self, tensor: Tensor, bucket: int = 0) -> None:
        """Sum a tensor in place over the ranks."""
        ring_allreduce(tensor, self.comm, wire=self.wire, bucket=bucket, cuda_aware=self.cuda_aware)


class AutoExchange:
    """MPI_Allreduce for small tensors, whose latency counts, and the ring for large ones.

    The choice depends on the size alone, never on a measurement, so that runs repeat to the bit.
    """

    def __init__(self, small: Exchange, large: Exchange, threshold_bytes: int) -> None:
        self.small, self.large, self.threshold_bytes = small, large, threshold_bytes

    def allreduce(self, tensor: Tensor, bucket: int = 0) -> None:
        """Sum a tensor in place over the ranks."""
        chosen = self.small if tensor.nbytes < self.threshold_bytes else self.large
        chosen.allreduce(tensor, bucket)


def make_exchange(name: ExchangeName, comm: Communicator, settings: ParallelSettings) -> Exchange:
    """Return the synchronous exchange of a name.

    Args:
        name: One of `EXCHANGES` that sums gradients: not none, ps_async, aavg or periodic.
        comm: An mpi4py communicator that nobody else uses.
        settings: Wire type, threshold of `auto` and so on.

    Raises:
        ValueError: A name that is none, or one that has no wire type of its own with another
            than float32.
    """
    wire = None if settings.wire == "float32" else getattr(torch, settings.wire)
    aware = settings.cuda_aware
    if wire is not None and name in ("mpi", "gloo", "nccl"):
        raise ValueError(f"wire {settings.wire} with exchange {name}: it sends float32 only")
    ring = RingExchange(comm, wire, aware)
    match name:
        case "ring":
            return ring
        case "auto":
            small = ring if wire is not None else MpiAllreduce(comm, aware)
            return AutoExchange(small, ring, settings.auto_kib * 1024)
        case "ps":
            return ParameterServer(comm, "own_rank", wire=wire, cuda_aware=aware)
        case "ps_worker":
            return ParameterServer(comm, "on_worker", wire=wire, cuda_aware=aware)
        case "ps_sharded":
            return ParameterServer(comm, "sharded", wire=wire, cuda_aware=aware)
        case "mpi":
            return MpiAllreduce(comm, aware)
        case "gloo" | "nccl":
            # the watchdog, which knows whom all wait for, is to be the first to end the job
            return TorchAllreduce(comm, name, 2 * settings.stall_seconds + 60)
    raise ValueError(f"exchange {name!r} makes no sums")


def role(name: ExchangeName, rank: int, size: int) -> tuple[int | None, int]:
    """Return which worker a rank is (None: a server alone) and how many workers there are."""
    if name in SERVED:
        return (rank - 1 if rank else None), size - 1
    return rank, size
