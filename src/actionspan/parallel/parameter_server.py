"""Synchronous parameter servers: one central server, or every rank serving a part.

They are alternatives to the ring (paper 000 compares with the central one) and take the same calls.
A server adds in rank order, never in order of arrival, so that runs repeat to the bit.
"""

from typing import Literal, get_args

import torch
from torch import Tensor

from actionspan.parallel.communicator import PointToPoint, as_buffer, settle, tag_of, wait
from actionspan.parallel.rounds import block_bounds, pull_rounds, push_rounds
from actionspan.parallel.transfer import PIECE_BYTES, Transfer, scratch, workspace

Placement = Literal["own_rank", "on_worker", "sharded"]


class ParameterServer:
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
