"""The clocks of thousands of ranks at once, without their data.

The schedules of `rounds.py` are run with an array in place of the rank, by the rules of
`simulated.py` and with the pieces of `transfer.py`; the tests hold the seconds equal to those of
the engine itself over simulated ranks. MPI_Allreduce is a model of the library, not its code.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from actionspan.parallel.rounds import (
    Round,
    block_bounds,
    gather_rounds,
    pull_rounds,
    push_rounds,
    scatter_rounds,
)
from actionspan.parallel.simulated import Costs
from actionspan.parallel.transfer import IN_FLIGHT, PIECE_BYTES

Floats = npt.NDArray[np.float64]

ALGORITHMS = ("ring", "ps", "ps_worker", "ps_sharded", "mpi")
# MPICH's limit for recursive doubling, MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE
SHORT_BYTES = 2048


def simulated_seconds(
    algorithm: str, workers: int, tensor_bytes: int, costs: Costs, itemsize: int = 4
) -> Floats:
    """Return how long one all-reduce takes each rank.

    Args:
        algorithm: One of `ALGORITHMS`, named as exchanges are.
        workers: How many tensors are summed; `ps` has a rank more, the server, as rank 0.
        tensor_bytes: Bytes of each tensor.
        costs: Of messages and additions.
        itemsize: Bytes of a value.

    Returns:
        (ranks,) seconds; the greatest is when all are done.

    Raises:
        ValueError: An algorithm that is none, or a tensor that is no whole number of values.
    """
    if algorithm not in ALGORITHMS:
        raise ValueError(f"algorithm {algorithm!r}: one of {', '.join(ALGORITHMS)}")
    if workers < 1 or tensor_bytes < 0 or tensor_bytes % itemsize:
        raise ValueError(f"{workers} workers, {tensor_bytes} bytes of {itemsize}-byte values")
    if algorithm == "mpi":
        return np.full(workers, _library_seconds(workers, tensor_bytes, costs, itemsize))
    if algorithm in ("ps", "ps_worker"):
        return _central_seconds(workers, tensor_bytes, costs, algorithm == "ps", itemsize)
    return _even_seconds(algorithm, workers, tensor_bytes, costs, itemsize)


class _Clocks:
    """The clocks and ports of many ranks; every rank exchanges at the same time."""

    def __init__(self, ranks: int, costs: Costs, itemsize: int) -> None:
        self.now, self.out_free, self.in_free = np.zeros((3, ranks))
        self.costs = costs
        self.piece = max(1, PIECE_BYTES // itemsize) * itemsize

    def exchange(self, send: Floats, source: Any, receive: Floats, *, add: bool) -> None:
        """Do what `Transfer.exchange` does.

        Args:
            send: (ranks,) bytes that each rank sends.
            source: (ranks,) from which rank each receives.
            receive: (ranks,) bytes that each rank receives.
            add: Whether what comes is added.
        """
        alpha, beta, gamma = self.costs
        pieces = int(-(-send.max() // self.piece))
        sent: list[Floats] = []
        received: list[tuple[Floats, Floats]] = []
        for number in range(pieces + IN_FLIGHT if pieces else 0):
            if number >= IN_FLIGHT:
                complete, length = received[number - IN_FLIGHT]
                self.now = np.maximum(self.now, complete)
                if add:
                    self.now = self.now + gamma * length
                self.now = np.maximum(self.now, sent[number - IN_FLIGHT])
            if number < pieces:
                outgoing = np.clip(send - number * self.piece, 0, self.piece)
                incoming = np.clip(receive - number * self.piece, 0, self.piece)
                left = np.maximum(self.now, self.out_free)
                self.out_free = left + outgoing * beta
                sent.append(self.out_free)
                arrived = np.maximum(left[source] + alpha, self.in_free) + incoming * beta
                self.in_free = np.where(incoming > 0, arrived, self.in_free)
                complete = np.where(incoming > 0, arrived, -np.inf)
                received.append((complete, incoming))


def _even_seconds(
    algorithm: str, workers: int, tensor_bytes: int, costs: Costs, itemsize: int
) -> Floats:
    """Return each rank's seconds in the ring or with sharded servers.

    Where a number divides both the values and the ranks, block sizes repeat that many times round
    the ring, and so does all that ranks do: one period stands for all.
    """
    values = tensor_bytes // itemsize
    period = workers // math.gcd(values, workers)
    bounds = block_bounds(values, workers)[: period + 1]
    blocks = np.diff(np.array(bounds, dtype=np.float64)) * itemsize
    rank = np.arange(period)
    clocks = _Clocks(period, costs, itemsize)

    def run(rounds: Iterator[Round], *, add: bool) -> None:
        for move in rounds:
            send, receive = (
                np.broadcast_to(blocks[number % period], period)
                for number in (move.send, move.receive)
            )
            clocks.exchange(send, move.source % period, receive, add=add)

    if algorithm == "ring":
        run(scatter_rounds(rank, workers), add=True)
        run(gather_rounds(rank, workers), add=False)
    else:
        run(push_rounds(rank, workers), add=False)
        clocks.now = clocks.now + (workers - 1) * blocks * costs.gamma
        run(pull_rounds(rank, workers), add=False)
    return np.tile(clocks.now, workers // period)


def _central_seconds(
    workers: int, tensor_bytes: int, costs: Costs, own_rank: bool, itemsize: int
) -> Floats:
    """Return the seconds of the server, then of each worker that is not the server.

    Tensors come through the server's port one after the other, without a gap after the first
    has arrived; the server adds each piece when it is there. Then the sum leaves through the
    same port, each piece to all workers.
    """
    alpha, beta, gamma = costs
    clients = workers if own_rank else workers - 1
    if not clients or not tensor_bytes:
        return np.zeros(workers + own_rank)
    piece = max(1, PIECE_BYTES // itemsize) * itemsize
    starts = np.arange(0, tensor_bytes, piece)
    lengths = np.minimum(piece, tensor_bytes - starts).astype(np.float64)  # (pieces,)

    arriving = np.tile(lengths, clients)
    arrived = alpha + np.cumsum(arriving) * beta
    added = arriving * gamma
    if own_rank:
        added[: len(lengths)] = 0  # the first worker's tensor is only put in place
    # the server is done with a message when the last one that kept it waiting, and all from then
    # on, are added
    begun = float((arrived + np.cumsum(added[::-1])[::-1]).max())

    left = begun + np.cumsum(np.repeat(lengths, clients)) * beta
    done = left[-clients:] + alpha  # (clients,) when each one's last piece has come
    return np.concatenate([left[-1:], done])


def _library_seconds(workers: int, tensor_bytes: int, costs: Costs, itemsize: int) -> float:
    """Return the seconds of MPI_Allreduce by its published algorithms.

    Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH"
    (2005), as MPICH applies it: recursive doubling for short messages, reduce-scatter by halving
    with allgather by doubling for long ones. Where the ranks are no power of two, those beyond
    it give their tensors to a neighbour before and get the sum after.
    """
    alpha, beta, gamma = costs
    steps = workers.bit_length() - 1
    power = 1 << steps
    whole = alpha + tensor_bytes * beta
    add = tensor_bytes * gamma
    seconds = 0.0
    if not steps or not tensor_bytes:
        return seconds
    if workers != power:
        seconds += whole + add + whole
    if tensor_bytes <= SHORT_BYTES or tensor_bytes // itemsize < power:
        return seconds + steps * (whole + add)
    moved = tensor_bytes * (1 - 1 / power)
    return seconds + 2 * (steps * alpha + moved * beta) + moved * gamma
