"""Ranks that torchrun starts: a communicator over torch's key-value store, without MPI.

It carries what an exchange needs besides its sums (first weights, losses, the watchdog's notes);
the sums themselves go by gloo or nccl (`collective.TorchAllreduce`). The ring and the servers need
MPI.
"""

import os
import pickle
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, NoReturn

import torch.distributed as distributed

from actionspan.errors import InputError

# Longer than any exchange may take: the watchdog ends a job that stalls, torchrun one that fails.
_WAIT = timedelta(days=7)


class Done:
    """A send that is complete."""

    def Test(self) -> bool:
        """Return True."""
        return True


class TorchrunCommunicator:
    """The calls of `mpi4py.MPI.Comm` that gloo and nccl need, for the ranks of torchrun.

    Each message is a key of the store, deleted when the last of its readers has it. Collective
    calls match by their order. An attempt of torchrun (`--max-restarts`) sees nothing of the last.
    """

    def __init__(self, name: str = "actionspan") -> None:
        """Connect to torchrun's store; `name` sets this communicator's messages apart."""
        self._name, self._dups, self._calls = name, 0, 0
        self._sent, self._received = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
        torch_distributed: Any = distributed  # its types leave out what is used here
        meeting = torch_distributed.rendezvous("env://", timeout=_WAIT)
        store, self._rank, self._size = next(meeting)
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        self._store = torch_distributed.PrefixStore(f"{name}/{attempt}", store)
        self._store.set_timeout(_WAIT)

    def Get_rank(self) -> int:
        """Return this process's number."""
        return int(self._rank)

    def Get_size(self) -> int:
        """Return how many processes there are."""
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
        """Send a few bytes to a rank."""
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

    def told_by(self, tag: int) -> Iterator[int]:
        """Yield the ranks whose notes have arrived, once for each note, and take the notes."""
        for source in range(self._size):
            while self._store.check([key := self._next_from(source, tag)]):
                self._store.delete_key(key)
                self._received[source, tag] += 1
                yield source

    def _next_from(self, source: int, tag: int) -> str:
        return f"{source}>{self._rank}/{tag}/{self._received[source, tag]}"

    def Bcast(self, buf: Any, root: int) -> None:
        """Give all ranks the bytes of rank `root`."""
        view = memoryview(buf).cast("B")
        data = self._shared(bytes(view) if self._rank == root else None, root)
        if self._rank != root:
            view[:] = data

    def bcast(self, obj: Any, root: int) -> Any:
        """Give all ranks an object of rank `root`."""
        data = self._shared(pickle.dumps(obj) if self._rank == root else None, root)
        return obj if self._rank == root else pickle.loads(data)

    def scatter(self, sendobj: Any, root: int) -> Any:
        """Give each rank its own of the root's objects."""
        call = self._next_call()
        if self._rank == root:
            for rank, value in enumerate(sendobj):
                if rank != root:
                    self._store.set(f"{call}/{rank}", pickle.dumps(value))
            return sendobj[root]
        return pickle.loads(self._taken(f"{call}/{self._rank}", 1))

    def gather(self, sendobj: Any, root: int) -> list[Any] | None:
        """Return the objects of all ranks on the root, None elsewhere."""
        call = self._next_call()
        if self._rank != root:
            self._store.set(f"{call}/{self._rank}", pickle.dumps(sendobj))
            return None
        return [
            sendobj if rank == root else pickle.loads(self._taken(f"{call}/{rank}", 1))
            for rank in range(self._size)
        ]

    def allgather(self, sendobj: Any) -> list[Any]:
        """Return the objects of all ranks."""
        return [
            self.bcast(sendobj if rank == self._rank else None, root=rank)
            for rank in range(self._size)
        ]

    def _shared(self, data: bytes | None, root: int) -> bytes:
        """Return the bytes of the root; `data` are those, on the root."""
        call = self._next_call()
        if data is None:
            return self._taken(call, self._size - 1)
        if self._size > 1:
            self._store.set(call, data)
        return data

    def _taken(self, key: str, readers: int) -> bytes:
        """Wait for a key; the last of its readers deletes it."""
        data: bytes = self._store.get(key)
        if readers == 1 or self._store.add(f"{key}/read", 1) == readers:
            self._store.delete_key(key)
            self._store.delete_key(f"{key}/read")
        return data

    def _next_call(self) -> str:
        self._calls += 1
        return f"call/{self._calls}"
