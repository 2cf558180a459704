"""The exchange of a name: the ring, a server, or a library (MPI_Allreduce, torch.distributed)."""

import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial

import torch
from torch import Tensor

from actionspan.errors import JobError
from actionspan.parallel.communicator import Communicator, Exchange, settle
from actionspan.parallel.fastest import BySize, fastest
from actionspan.parallel.neighbours import Shared, shared_zeros
from actionspan.parallel.parameter_server import ParameterServer, Placement
from actionspan.parallel.ring import ring_allreduce
from actionspan.parallel.settings import ExchangeName, ParallelSettings
from actionspan.parallel.transfer import SUMMED, check, workspace, zeros
from actionspan.parallel.watchdog import GRACE_SECONDS

_PLACEMENTS: dict[str, Placement] = {
    "ps": "own_rank",
    "ps_worker": "on_worker",
    "ps_sharded": "sharded",
}


class RingExchange(Exchange):
    """The ring; tensors that `room` has made are read in place by ranks of the same machine."""

    def __init__(self, comm: Communicator, wire: torch.dtype | None, cuda_aware: bool) -> None:
        self.comm, self.wire, self.cuda_aware = comm, wire, cuda_aware
        self._rooms: dict[int, Shared] = {}  # by address

    def room(self, length: int, dtype: torch.dtype, device: torch.device) -> Tensor:
        """Return (length,) zeros; all ranks call it, in the same order and with the same values."""
        summed_as_it_is = device.type == "cpu" and dtype in SUMMED
        if summed_as_it_is and self.wire is None and length and self.comm.Get_size() > 1:
            shared = shared_zeros(length, dtype, self.comm)
            if shared is not None:
                self._rooms[shared.own.data_ptr()] = shared
                return shared.own
        return zeros(length, dtype, device)

    def allreduce(self, tensor: Tensor, bucket: int = 0) -> None:
        """Sum a tensor in place over the ranks: of `room`, the start of one, or any other."""
        shared = self._rooms.get(tensor.data_ptr())
        left = None
        if shared is not None and shared.own.dtype == tensor.dtype:
            left = shared.left[: tensor.numel()]
        wire, aware = self.wire, self.cuda_aware
        ring_allreduce(tensor, self.comm, wire=wire, bucket=bucket, cuda_aware=aware, left=left)


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
    if name in _PLACEMENTS:
        return ParameterServer(comm, _PLACEMENTS[name], wire=wire, cuda_aware=aware)
    match name:
        case "ring":
            return RingExchange(comm, wire, aware)
        case "auto":
            ring = RingExchange(comm, wire, aware)
            if wire is not None:
                return ring  # the others cannot, or are no faster
            sharded = ParameterServer(comm, "sharded", cuda_aware=aware)
            exchanges: dict[str, Exchange]
            exchanges = {"ring": ring, "mpi": _MpiAllreduce(comm, aware), "ps_sharded": sharded}
            if settings.auto_kib >= 0:
                table = [(0, "mpi"), (settings.auto_kib * 1024, "ring")]
            else:
                tried = RingExchange(comm, wire, aware)  # with its room, which is given back
                table = fastest(exchanges | {"ring": tried}, comm, tried.room)
            return BySize(exchanges, table, ring.room)
        case "mpi":
            return _MpiAllreduce(comm, aware)
        case "gloo" | "nccl":
            return TorchAllreduce(comm, name, settings.stall_seconds)
    raise ValueError(f"exchange {name!r} makes no sums")


_LOST = re.compile(r"[Cc]onnection|[Pp]eer|[Bb]roken pipe|[Ss]ocket|remote")  # as torch words it


class _MpiAllreduce(Exchange):
    """MPI_Allreduce; half-precision tensors are summed, and travel, in float32."""

    def __init__(self, comm: Communicator, cuda_aware: bool = False) -> None:
        from mpi4py import MPI

        self.comm, self.cuda_aware = comm, cuda_aware
        self._in_place, self._sum = MPI.IN_PLACE, MPI.SUM

    def allreduce(self, tensor: Tensor, bucket: int = 0) -> None:
        """Sum a tensor in place, as `ring_allreduce` does; calls match by order, not by bucket."""
        with workspace(tensor, self.cuda_aware) as flat:
            if len(flat):
                buffer = flat.numpy() if flat.device.type == "cpu" else flat
                self.comm.Allreduce(self._in_place, buffer, self._sum)

    def bind(self, tensor: Tensor, bucket: int = 0) -> Callable[[], object]:
        """Return the call of MPI itself, as Python takes as long as MPI for a small tensor."""
        check(tensor)
        if tensor.device.type != "cpu" or tensor.dtype not in SUMMED or not tensor.numel():
            return super().bind(tensor, bucket)
        buffer = tensor.detach().view(-1).numpy()
        return partial(self.comm.Allreduce, self._in_place, buffer, self._sum)


class TorchAllreduce(Exchange):
    """torch.distributed's all-reduce, `gloo` on CPUs and `nccl` on GPUs.

    Its process group is made over TCP from rank 0's address, which MPI distributes.
    """

    def __init__(self, comm: Communicator, backend: str, stall_seconds: float) -> None:
        import torch.distributed as distributed
        from torch.distributed import TCPStore  # type: ignore[attr-defined]

        self._distributed = distributed
        rank, size = comm.Get_rank(), comm.Get_size()
        self._rank = rank
        # longer than the watchdog, which ends the job first because it can name the missing rank
        wait = timedelta(seconds=2 * stall_seconds + 60)
        if rank == 0:
            host = socket.gethostname()
            try:
                socket.getaddrinfo(host, None)
            except OSError:
                host = "127.0.0.1"  # a machine that cannot resolve its own name is on its own
            store = TCPStore(host, 0, size, is_master=True, timeout=wait, wait_for_workers=False)
            comm.bcast((host, store.port), root=0)
        else:
            host, port = comm.bcast(None, root=0)
            store = TCPStore(host, port, size, is_master=False, timeout=wait)
        distributed.init_process_group(
            backend, store=store, rank=rank, world_size=size, timeout=wait
        )

    def allreduce(self, tensor: Tensor, bucket: int = 0) -> None:
        """Sum a CPU tensor (`gloo`) or a GPU tensor (`nccl`) in place over the ranks.

        Half precision is summed in float32. Calls match by order, not by bucket.

        Raises:
            ValueError: The tensor is not contiguous or not of a floating type.
            JobError: Another rank is gone.
        """
        check(tensor)
        half = tensor.dtype in (torch.float16, torch.bfloat16)
        flat = tensor.detach().float() if half else tensor.detach()
        if flat.numel():
            with self.exchanging():
                self._distributed.all_reduce(flat)
                settle(flat)  # nccl only queues it
        if half:
            tensor.detach().copy_(flat)

    @contextmanager
    def exchanging(self) -> Iterator[None]:
        """Print in one line that another rank is gone, where nobody else has."""
        try:
            yield
        except RuntimeError as error:
            if not _LOST.search(str(error)):
                raise
            # its own line has the reason, and then the launcher ends this one
            time.sleep(GRACE_SECONDS)
            line = f"rank {self._rank}: another rank is gone: it was killed, or has failed"
            raise JobError(line) from None

    def close(self) -> None:
        """Tear the process group down."""
        self._distributed.destroy_process_group()
