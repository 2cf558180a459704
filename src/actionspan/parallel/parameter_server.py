"""Parameter servers, synchronous and asynchronous: alternatives to the ring.

Paper 000 compares the ring with a central server. The synchronous ones (one central server, or each
rank serving a part) take the same calls as the ring, and add in rank order, never in order of
arrival, so that runs repeat to the bit. With the asynchronous one, rank 0 holds the parameters and
the optimiser; a worker sends its gradient, gets the parameters and continues, without waiting for
other workers unless a bound on the age of gradients requires it (Downpour SGD with the bound of
stale-synchronous training).
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Literal, cast, get_args

import torch
from torch import Tensor

from actionspan.parallel.communicator import (
    Communicator,
    CountingCommunicator,
    Exchange,
    PointToPoint,
    as_buffer,
    settle,
    tag_of,
    wait,
)
from actionspan.parallel.member import Member, broadcast, timed
from actionspan.parallel.ring import Round, block_bounds
from actionspan.parallel.transfer import PIECE_BYTES, Transfer, scratch, workspace

Placement = Literal["own_rank", "on_worker", "sharded"]


def push_rounds(rank: Any, size: int) -> Iterator[Round]:
    """Yield the sharded server's first half: rank n collects all contributions to block n."""
    for j in range(1, size):
        yield Round((rank + j) % size, (rank + j) % size, rank, (rank - j) % size)


def pull_rounds(rank: Any, size: int) -> Iterator[Round]:
    """Yield the sharded server's second half: rank n sends the sum of block n to all."""
    for j in range(1, size):
        yield Round(rank, (rank + j) % size, (rank - j) % size, (rank - j) % size)


class ParameterServer(Exchange):
    """Sums tensors over workers through servers.

    Placements, for n workers and tensors of K bytes:

    - `own_rank`: rank 0 serves and computes nothing, ranks 1…n work. 2·n·K bytes pass the server.
    - `on_worker`: rank 0 serves and works. 2·(n - 1)·K bytes pass it.
    - `sharded`: every rank serves one block. 2·(n - 1)/n·K bytes pass each, as in the ring.

    Args:
        comm: An mpi4py communicator, or one like it.
        placement: Where the server is.
        wire: The type in which values travel; None: their own. Sums are float32 or float64.
        piece_bytes: Longer blocks travel in pieces of this many bytes.
        cuda_aware: Hand GPU memory to MPI without staging it in host memory.

    Raises:
        ValueError: Unknown placement, or a dedicated server without workers.
    """

    def __init__(
        self,
        comm: PointToPoint,
        placement: Placement = "own_rank",
        *,
        wire: torch.dtype | None = None,
        piece_bytes: int = PIECE_BYTES,
        cuda_aware: bool = False,
    ) -> None:
        if placement not in get_args(Placement):
            raise ValueError(f"placement {placement!r}: own_rank, on_worker or sharded")
        self.comm, self.placement, self.wire, self.cuda_aware = comm, placement, wire, cuda_aware
        self.piece_bytes = piece_bytes
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        if placement == "own_rank" and self.size < 2:
            raise ValueError("a server on a rank of its own needs at least one more rank, a worker")

    def allreduce(self, tensor: Tensor, bucket: int = 0) -> None:
        """Sum a tensor in place over the workers; every rank, servers included, gets the sum.

        All ranks call it with tensors of one shape and type, in the same order. The values that a
        server on its own rank passes are ignored. Arguments and errors are `ring_allreduce`'s.
        """
        with workspace(tensor, self.cuda_aware) as flat:
            sharded = self.placement == "sharded"
            bounds = block_bounds(len(flat), self.size) if sharded else [0, len(flat)]
            wire = self.wire or tensor.dtype
            blocks = Transfer(flat, bounds, self.comm, bucket, wire, self.piece_bytes)
            if self.size > 1:
                if sharded:
                    self._sharded(blocks)
                elif self.rank == 0:
                    self._serve(blocks)
                else:
                    blocks.exchange("push", flat, 0, None, 0, add=False)
                    blocks.exchange("pull", None, 0, flat, 0, add=False)

    def _serve(self, blocks: Transfer) -> None:
        """Collect from each worker in turn, then send the sum to all."""
        flat = blocks.flat
        for worker in range(1, self.size):
            first = self.placement == "own_rank" and worker == 1
            blocks.exchange("push", None, worker, flat, worker, add=not first)
        blocks.round_to_wire(flat)
        tag = tag_of(blocks.bucket, "pull")
        pieces = blocks.pieces(flat.to(blocks.wire))
        settle(flat)
        workers = range(1, self.size)
        wait(*[self.comm.Isend(as_buffer(each), to, tag) for each in pieces for to in workers])

    def _sharded(self, blocks: Transfer) -> None:
        """Collect the contributions to this rank's block, add them in rank order, send the sum."""
        own = blocks.block(self.rank)
        room = scratch("slots", self.size * len(own), own.dtype, own.device)
        slots = room.view(self.size, len(own))
        slots[self.rank].copy_(own)
        for send, to, _, source in push_rounds(self.rank, self.size):
            blocks.exchange("push", blocks.block(send), to, slots[source], source, add=False)
        torch.add(slots[0], slots[1], out=own)
        for rank in range(2, self.size):
            own.add_(slots[rank])
        blocks.round_to_wire(own)
        for _, to, receive, source in pull_rounds(self.rank, self.size):
            blocks.exchange("pull", own, to, blocks.block(receive), source, add=False)


_AT_REST = -1  # a version that announces no more gradients before `synchronise`


class AsyncReplica(Member):
    """A worker of an asynchronous server, or (rank 0) the server itself.

    Every update makes a new version of the parameters. A gradient's staleness is the number of
    updates between the version it was computed at and its own update. The server holds gradients
    back while an update would make the gradient that some worker is still computing staler than
    `settings.staleness`, and then adds those it held, in rank order, into one update. With a bound
    of 0, training is synchronous.
    """

    name = "ps_async"

    def _check(self) -> None:
        if self.size < 2:
            raise ValueError("ps_async needs one rank for the server and at least one worker")
        if self.settings.wire != "float32" or self.settings.overlap:
            raise ValueError("exchange ps_async sends float32, after backward: no wire, no overlap")
        self._parameters = [each for each in self.model.parameters() if each.requires_grad]
        if any(parameter.dtype != torch.float32 for parameter in self._parameters):
            raise ValueError("exchange ps_async: the model has parameters that are not float32")

    def _start(self) -> None:
        self._counting = CountingCommunicator(self.comm)
        self.comm = cast(Communicator, self._counting)  # it passes all other calls on
        # all values, then 1 for each parameter that has a gradient
        self._sizes = [*(each.numel() for each in self._parameters), len(self._parameters)]
        self._flat = torch.zeros(sum(self._sizes))
        self._header = torch.zeros(2, dtype=torch.int64)  # version, gradients (0 or 1)
        self._version = 0
        # the server's:
        self.staleness: Counter[int] = Counter()
        self._received = 0
        self._computing = dict.fromkeys(range(1, self.size), 0)  # worker → version it computes at
        self._held: dict[int, tuple[int, Tensor | None]] = {}  # worker → version, gradient
        self._resting: set[int] = set()

    def step(self) -> None:
        """Send the gradient and take new parameters; the server serves one step of each worker."""
        self._steps += 1
        with self._waiting(f"the gradients of step {self._steps}", "communication"):
            if self.worker is None:
                while self._received < self.workers * self._steps:
                    self._serve()
            else:
                gradients = [parameter.grad for parameter in self._parameters]
                self._pack(gradients)
                self._send(self._version, any(gradient is not None for gradient in gradients))
                wait(*self._move(self.comm.Irecv, 0, "pull"))
                self._version = int(self._header[0])
                self._unpack()

    def synchronise(self) -> None:
        """Apply all gradients under way; give every rank the same parameters and buffers."""
        with self._waiting("the last gradients"):
            if self.worker is None:
                while len(self._resting) < self.workers:
                    self._serve()
                self._pack([parameter.data for parameter in self._parameters])
            else:
                self._send(_AT_REST, 0)
            self.comm.Bcast(as_buffer(self._flat), root=0)
            self._version = int(self.comm.bcast(self._version, root=0))
            broadcast(self.model.buffers(), self.comm, root=1)
        if self.worker is None:
            self._resting.clear()
            self._computing = dict.fromkeys(range(1, self.workers + 1), self._version)
        else:
            self._unpack()

    def report(self) -> dict[str, Any]:
        """Return the bytes this rank sent in steps and, on the server, how stale gradients were.

        `staleness` counts gradients by their age in updates.
        """
        sent = {"sent_bytes": self._counting.total_sent()}
        if self.worker is not None:
            return sent
        ages = {str(age): self.staleness[age] for age in sorted(self.staleness)}
        return {"staleness": ages, **sent}

    # The worker's part

    def _send(self, version: int, gradients: int) -> None:
        self._header[0], self._header[1] = version, gradients
        wait(*self._move(self.comm.Isend, 0, "push", 1 if version == _AT_REST else 2))

    def _move(self, move: Callable[..., Any], rank: int, phase: str, parts: int = 2) -> list[Any]:
        """Start to send or receive the header and, with 2 parts, the values."""
        tensors = (self._header, self._flat)[:parts]
        return [move(as_buffer(each), rank, tag_of(n, phase)) for n, each in enumerate(tensors)]

    def _pack(self, values: list[Tensor | None]) -> None:
        *parts, counts = torch.split(self._flat, self._sizes)
        for number, (part, value) in enumerate(zip(parts, values, strict=True)):
            part.zero_() if value is None else part.copy_(value.detach().reshape(-1))
            counts[number] = value is not None

    @torch.no_grad()
    def _unpack(self) -> None:
        *parts, _ = torch.split(self._flat, self._sizes)
        for part, parameter in zip(parts, self._parameters, strict=True):
            parameter.copy_(part.view_as(parameter))

    # The server's part

    def _serve(self) -> None:
        """Take one message of any worker, and make the update if it has become possible."""
        worker = self._next_message()
        wait(self.comm.Irecv(as_buffer(self._header), worker, tag_of(0, "push")))
        version, gradients = (int(value) for value in self._header)
        del self._computing[worker]
        if version == _AT_REST:
            self._resting.add(worker)
        else:
            gradient = torch.empty_like(self._flat)
            wait(self.comm.Irecv(as_buffer(gradient), worker, tag_of(1, "push")))
            self._held[worker] = (version, gradient if gradients else None)
            self._received += 1
        oldest = min(self._computing.values(), default=self._version + 1)
        if self._held and self._version + 1 - oldest <= self.settings.staleness:
            self._update()

    def _next_message(self) -> int:
        """Wait, politely, for a message of any worker and return the worker."""
        from mpi4py import MPI

        class Probe:
            status = MPI.Status()

            def Test(probe) -> bool:  # noqa: N805
                return bool(self.comm.Iprobe(MPI.ANY_SOURCE, tag_of(0, "push"), probe.status))

        probe = Probe()
        wait(probe)
        return int(probe.status.source)

    def _update(self) -> None:
        """Make one update of all held gradients and send the parameters to their workers."""
        with timed(self.seconds, "update"):
            held = [self._held[worker] for worker in sorted(self._held)]
            # the sum of all held gradients, then the optimiser's step
            gradients = [gradient for _, gradient in held if gradient is not None]
            if gradients:
                self.staleness.update(
                    self._version - version for version, gradient in held if gradient is not None
                )
                total = gradients[0]
                for gradient in gradients[1:]:
                    total += gradient
                *parts, counts = torch.split(total, self._sizes)
                for part, parameter, count in zip(parts, self._parameters, counts, strict=True):
                    gradient = part.view_as(parameter).to(parameter.device)
                    parameter.grad = gradient if count else None
                self.optimiser.step()
                self._version += 1

            # send the new parameters to the workers that sent these gradients
            self._pack([parameter.data for parameter in self._parameters])
            self._header[0], self._header[1] = self._version, 0
            requests = []
            for worker in self._held:
                self._computing[worker] = self._version
                requests += self._move(self.comm.Isend, worker, "pull")
            self._held.clear()
            wait(*requests)
