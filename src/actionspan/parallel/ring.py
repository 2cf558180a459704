"""Ring all-reduce: the parallel architecture of paper 000, section III-D.

Four ranks with four blocks each. Below each rank is the block that it sends in a round:

          ┌──> rank 0 ───> rank 1 ───> rank 2 ───> rank 3 ──┐
          └─────────────────────────────────────────────────┘
    scatter 1  block 0     block 1     block 2     block 3    its own; the receiver adds
            2        3           0           1           2    a sum of two
            3        2           3           0           1    a sum of three
    gather  1        1           2           3           0    complete sums; the receiver keeps
            2        0           1           2           3
            3        3           0           1           2    now all ranks have all of them

A schedule is arithmetic on the rank alone. MPI runs it with one rank a process (`transfer.py`); the
simulator runs it for all ranks at once, with an array instead of the rank.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from actionspan.parallel.communicator import PointToPoint, borrow, lend, tag_of, wait
from actionspan.parallel.transfer import PIECE_BYTES, Transfer, workspace


class Round(NamedTuple):
    """One block to send and one to receive at the same time; blocks and ranks by number."""

    send: Any
    to: Any
    receive: Any
    source: Any


def block_bounds(length: int, blocks: int) -> list[int]:
    """Return where `blocks` blocks of `length` values start and end: floor(length·i / blocks).

    Block lengths differ by one at most; with fewer values than blocks, some are empty.
    """
    return [length * i // blocks for i in range(blocks + 1)]


def scatter_rounds(rank: Any, size: int) -> Iterator[Round]:
    """Yield the ring's scatter (paper 000, section III-D): each received block is added.

    Afterwards rank n holds the sum of block (n + 1) % size.
    """
    for i in range(size - 1):
        yield Round((rank - i) % size, (rank + 1) % size, (rank - i - 1) % size, (rank - 1) % size)


def gather_rounds(rank: Any, size: int) -> Iterator[Round]:
    """Yield the ring's gather: each received block replaces the rank's own.

    Paper 000 prints blocks (n - i - 1) and (n - i - 2), which is right for two ranks only: after
    the scatter, rank n has block n + 1, and must start with it.
    """
    for i in range(size - 1):
        yield Round((rank - i + 1) % size, (rank + 1) % size, (rank - i) % size, (rank - 1) % size)


def ring_allreduce(
    tensor: Tensor,
    comm: PointToPoint,
    *,
    wire: torch.dtype | None = None,
    bucket: int = 0,
    piece_bytes: int = PIECE_BYTES,
    cuda_aware: bool = False,
    left: Tensor | None = None,
) -> None:
    """Sum a tensor in place over all ranks; every rank ends with the same bits.

    The tensor of M values is cut into one block a rank. In N - 1 rounds of scatter each rank passes
    a partial sum to its right neighbour, in N - 1 rounds of gather a finished block. All ranks
    together send 2·(N - 1)·M values, and each 2·(N - 1)/N·M of them, within one value a round.

    Args:
        tensor: Any shape, contiguous; float32, float64, float16 or bfloat16, on a CPU or a GPU.
            Half-precision values are summed in float32.
        comm: An mpi4py communicator (`pip install 'actionspan[mpi]'`), or one like it.
        wire: The type in which values travel, e.g. `torch.bfloat16`; None: their own. Sums stay
            float32, but each hop rounds the partial sum that it carries.
        bucket: Chooses the message tags; all-reduces that run at the same time need different ones.
        piece_bytes: Longer blocks travel in pieces of this many bytes.
        cuda_aware: Hand GPU memory to MPI as it is, without staging it in host memory.
        left: The left neighbour's tensor, where this process can read its memory
            (`neighbours.shared_zeros`). Blocks are then read in place, and `wire` and
            `piece_bytes` do not count. All ranks give it, or none.

    Raises:
        ValueError: The tensor is not contiguous or not of a floating type.
    """
    rank, size = comm.Get_rank(), comm.Get_size()
    with workspace(tensor, cuda_aware) as flat:
        if size == 1:
            return
        bounds, wire = block_bounds(len(flat), size), wire or tensor.dtype
        if left is not None:
            _read_around(flat, left, bounds, comm, bucket)
            return
        blocks = Transfer(flat, bounds, comm, bucket, wire, piece_bytes)
        block = blocks.block
        for send, to, receive, source in scatter_rounds(rank, size):
            blocks.exchange("scatter", block(send), to, block(receive), source, add=True)
        blocks.round_to_wire(block((rank + 1) % size))
        for send, to, receive, source in gather_rounds(rank, size):
            blocks.exchange("gather", block(send), to, block(receive), source, add=False)


def _read_around(
    own: Tensor, left: Tensor, bounds: Sequence[int], comm: PointToPoint, bucket: int
) -> None:
    """Run the ring's rounds, reading each block in the left neighbour's memory.

    Nobody changes a block that its right neighbour still reads: in the gather a block comes around
    to its owner only after that neighbour has added its part, and so has read it.
    """
    rank, size = comm.Get_rank(), comm.Get_size()
    phases = ("scatter", scatter_rounds), ("gather", gather_rounds)
    for phase, rounds in phases:
        tag = tag_of(bucket, phase)
        for send, to, receive, source in rounds(rank, size):
            block = slice(bounds[receive], bounds[receive + 1])
            lent = lend(comm, own[bounds[send] : bounds[send + 1]], to, tag)
            wait(borrow(comm, own[block], source, tag))
            if phase == "scatter":
                own[block].add_(left[block])
            else:
                own[block].copy_(left[block])
            wait(lent)
    # the caller may change the values when the right neighbour has read the last of them
    done = lend(comm, own[:0], (rank - 1) % size, tag)
    wait(borrow(comm, own[:0], (rank + 1) % size, tag), done)
