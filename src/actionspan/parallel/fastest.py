"""The exchange for each size of tensor: measured once on a machine, and kept for later runs."""

import json
import platform
import time
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from actionspan import __version__
from actionspan.parallel.buckets import Room
from actionspan.parallel.communicator import Communicator, Exchange
from actionspan.storage.cache import read_cached, write_cached
from actionspan.storage.writing import digest

Table = list[tuple[int, str]]  # least bytes and the exchange from there on; ascending, first is 0
SIZES = (4 << 20, 1 << 20, 256 << 10, 64 << 10, 8 << 10)  # bytes
_FEWEST_TURNS, _TURNS = 5, 15  # at a size
SECONDS = 0.4  # for all sizes
_FOR = "exchanges-"


class BySize(Exchange):
    """Sums a tensor by the exchange that a table names for its bytes.

    `room` makes tensors for all of them, as in `buckets.plan_buckets`.
    """

    def __init__(self, exchanges: Mapping[str, Exchange], table: Table, room: Room) -> None:
        self.exchanges, self.table, self.room = exchanges, table, room

    def allreduce(self, tensor: Tensor, bucket: int = 0) -> None:
        """Sum a tensor in place over the ranks."""
        self._chosen(tensor).allreduce(tensor, bucket)

    def bind(self, tensor: Tensor, bucket: int = 0) -> Callable[[], object]:
        """Return the call of the exchange for a tensor."""
        return self._chosen(tensor).bind(tensor, bucket)

    def _chosen(self, tensor: Tensor) -> Exchange:
        return self.exchanges[[name for least, name in self.table if least <= tensor.nbytes][-1]]


def fastest(exchanges: Mapping[str, Exchange], comm: Communicator, room: Room) -> Table:
    """Return which exchange is the fastest from how many bytes on; all ranks call it.

    It is measured, in about half a second (longer on slow networks), the first time that this
    version runs on these hosts, with these ranks and this MPI. Rank 0 keeps the answer in the
    user's cache, so that later runs choose alike, and sends it to the others. A cache that cannot
    be read or written does not matter.
    """
    from mpi4py import MPI

    hosts = comm.allgather(platform.node())
    made_by = digest(__version__, SIZES, MPI.Get_library_version(), hosts)
    first = comm.Get_rank() == 0
    table: Table | None = comm.bcast(kept(made_by, exchanges) if first else None, root=0)
    if table is None:
        table = measure(exchanges, comm, room)
        if first:
            # another job may have been faster; its choice stands
            table = kept(made_by, exchanges) or table
            keep(made_by, table)
        table = comm.bcast(table, root=0)
    assert table is not None
    return table


def kept(made_by: str, exchanges: Mapping[str, Exchange]) -> Table | None:
    """Return the table of a digest; None where there is none, or other exchanges are in it."""
    content = read_cached(_FOR + made_by)
    if content is None:
        return None
    table = [(least, name) for least, name in json.loads(content)]
    return table if {name for _, name in table} <= exchanges.keys() else None


def keep(made_by: str, table: Table) -> None:
    """Keep a table for later runs, where that is possible."""
    write_cached(_FOR + made_by, json.dumps(table).encode())


def measure(exchanges: Mapping[str, Exchange], comm: Communicator, room: Room) -> Table:
    """Return the fastest exchange of each size, by the least seconds of the slowest rank.

    The least, as whatever else the machine does only adds to it. A size represents those down to a
    third of it. The largest comes first, as it counts most; a size without time left takes the
    choice of the last.
    """
    buffer = room(SIZES[0] // 4, torch.float32, torch.device("cpu"))
    table: Table = []
    begun = time.perf_counter()
    for number, size in enumerate(SIZES, start=1):
        values, turns, more = buffer[: size // 4], list[list[float]](), True
        calls = [each.bind(values) for each in exchanges.values()]
        while more:
            turns.append([_seconds(call, values, comm) for call in calls])
            late = time.perf_counter() - begun > SECONDS * number / len(SIZES)
            more = comm.bcast(len(turns) < (_FEWEST_TURNS if late else _TURNS), root=0)
        slowest = torch.tensor(comm.allgather(turns)).amax(0)  # (turns, exchanges)
        name = list(exchanges)[int(slowest.amin(0).argmin())]
        table.append((size // 3, name))
        if comm.bcast(time.perf_counter() - begun > SECONDS, root=0):
            break
    return [(0, name), *reversed(table[:-1])]


def _seconds(call: Callable[[], object], values: Tensor, comm: Communicator) -> float:
    """Return the seconds of one all-reduce; all ranks begin together."""
    values.fill_(1.0)
    comm.allgather(None)
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun
