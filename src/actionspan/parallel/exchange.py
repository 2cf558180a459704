"""The one place where an exchange is chosen by its name."""

from typing import Protocol

import torch
from torch import Tensor

from actionspan.parallel.collective import MpiAllreduce, TorchAllreduce
from actionspan.parallel.communicator import Communicator
from actionspan.parallel.parameter_server import ParameterServer
from actionspan.parallel.ring import ring_allreduce
from actionspan.parallel.settings import ExchangeName, ParallelSettings


class Exchange(Protocol):
    """Sums tensors over the workers."""

    def allreduce(self, tensor: Tensor, bucket: int = 0) -> None:
        """Sum a tensor in place; every rank makes the same call and ends with the same bits."""


class RingExchange:
    """The ring, or MPI_Allreduce for tensors of fewer than `least_bytes`, where latency counts.

    The choice depends on the size alone, never on a measurement, so that runs repeat to the bit.
    """

    def __init__(
        self, comm: Communicator, wire: torch.dtype | None, cuda_aware: bool, least_bytes: int = 0
    ) -> None:
        self.comm, self.wire, self.cuda_aware = comm, wire, cuda_aware
        self.least_bytes, self._mpi = least_bytes, MpiAllreduce(comm, cuda_aware)

    def allreduce(self, tensor: Tensor, bucket: int = 0) -> None:
        """Sum a tensor in place over the ranks."""
        if tensor.nbytes < self.least_bytes:
            self._mpi.allreduce(tensor)
            return
        ring_allreduce(tensor, self.comm, wire=self.wire, bucket=bucket, cuda_aware=self.cuda_aware)


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
    match name:
        case "ring":
            return RingExchange(comm, wire, aware)
        case "auto":
            return RingExchange(comm, wire, aware, 0 if wire else settings.auto_kib * 1024)
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
