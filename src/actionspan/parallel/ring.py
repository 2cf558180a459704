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
"""

import torch
from torch import Tensor

from actionspan.parallel.communicator import PointToPoint
from actionspan.parallel.rounds import block_bounds, gather_rounds, scatter_rounds
from actionspan.parallel.transfer import PIECE_BYTES, Transfer, workspace


def ring_allreduce(
    tensor: Tensor,
    comm: PointToPoint,
    *,
    wire: torch.dtype | None = None,
    bucket: int = 0,
    piece_bytes: int = PIECE_BYTES,
    cuda_aware: bool = False,
) -> None:
    """Sum a tensor in place over all ranks; every rank ends with the same bits.

    The tensor of M values is cut into one block a rank. In N - 1 rounds of scatter each rank passes
    a partial sum to its right neighbour, in N - 1 rounds of gather a finished block. All ranks
    together send 2·(N - 1)·M values, and each 2·(N - 1)/N·M of them, within one value a round.

    Args:
        tensor: Any shape, contiguous; float32, float64, float16 or bfloat16, on a CPU or a GPU.
            Half-precision values are summed in float32.
        comm: An mpi4py communicator, or one like it.
        wire: The type in which values travel, e.g. `torch.bfloat16`; None: their own. Sums stay
            float32, but each hop rounds the partial sum that it carries.
        bucket: Chooses the message tags; all-reduces that run at the same time need different ones.
        piece_bytes: Longer blocks travel in pieces of this many bytes.
        cuda_aware: Hand GPU memory to MPI as it is, without staging it in host memory.

    Raises:
        ValueError: The tensor is not contiguous or not of a floating type.
    """
    rank, size = comm.Get_rank(), comm.Get_size()
    with workspace(tensor, cuda_aware) as flat:
        if size == 1:
            return
        bounds, wire = block_bounds(len(flat), size), wire or tensor.dtype
        blocks = Transfer(flat, bounds, comm, bucket, wire, piece_bytes)
        block = blocks.block
        for send, to, receive, source in scatter_rounds(rank, size):
            blocks.exchange("scatter", block(send), to, block(receive), source, add=True)
        blocks.round_to_wire(block((rank + 1) % size))
        for send, to, receive, source in gather_rounds(rank, size):
            blocks.exchange("gather", block(send), to, block(receive), source, add=False)
