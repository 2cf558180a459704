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
        """Sum a tensor in place; every rank makes the same call and ends with the same bits."""


class RingExchange:
    """`ring_allreduce` with fixed settings."""

    def __init__(self, comm: Communicator, wire: torch.dtype | None, cuda_aware: bool) -> None:
        self.comm, self.wire, self.cuda_aware = comm, wire, cuda_aware

    def allreduce(self, tensor: Tensor, bucket: int = 0) -> None:
        """Sum a tensor in place over the ranks."""
        ring_allreduce(tensor, self.comm, wire=self.wire, bucket=bucket, cuda_aware=self.cuda_aware)


class AutoExchange:
    """MPI_Allreduce for small tensors, where latency counts, and the ring for large ones.

    The choice depends on the size alone, never on a measurement, so that runs repeat to the bit.
    """

    def __init__(self, small: Exchange, large: Exchange, threshold_bytes: int) -> None:
        self.small, self.large, self.threshold_bytes = small, large, threshold_bytes

    def allreduce(self, tensor: Tensor, bucket: int = 0) -> None:
        """Sum a tensor in place over the ranks."""
        chosen = self.small if tensor.nbytes < self.threshold_bytes else self.large
        chosen.allreduce(tensor, bucket)


def make_exchange(name: ExchangeName, comm: Communicator, settings: ParallelSettings) -> Exchange:
    """Return the synchronous exchange of a name; nothing else may use its communicator.

    Raises:
        ValueError: The exchange sums no gradients (none, ps_async, aavg, periodic), or it sends
            float32 only and `settings.wire` is another type.
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
            return TorchAllreduce(comm, name, settings.stall_seconds)
    raise ValueError(f"exchange {name!r} makes no sums")


def role(name: ExchangeName, rank: int, size: int) -> tuple[int | None, int]:
    """Return a rank's worker number (None: it only serves) and the number of workers."""
    if name in SERVED:
        return (rank - 1 if rank else None), size - 1
    return rank, size
