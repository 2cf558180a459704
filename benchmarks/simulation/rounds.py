"""The clocks of thousands of ranks at once, without their data.

The schedules of `parallel.ring` and `parallel.parameter_server` run with an array in place of the
rank, by the rules of `ranks.py` and with the pieces of `parallel.transfer`; tests hold the seconds
equal to those of the engine itself over simulated ranks. MPI_Allreduce is a model of the library,
not its code.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from actionspan.arrays import Float64
from actionspan.parallel.parameter_server import pull_rounds, push_rounds
from actionspan.parallel.ring import Round, block_bounds, gather_rounds, scatter_rounds
from actionspan.parallel.transfer import IN_FLIGHT, PIECE_BYTES
from simulation.ranks import Costs, Port

ALGORITHMS = ("ring", "ps", "ps_worker", "ps_sharded", "mpi")
# MPICH's limit for recursive doubling, MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE
SHORT_BYTES = 2048
SERIES = 8
ITEM_BYTES = 4  # float32


def simulated_seconds(algorithm: str, workers: int, tensor_bytes: int, costs: Costs) -> Float64:
    """Return how long one all-reduce of float32 tensors takes each rank.

    Where ports let bursts through it is the last of `SERIES` with barriers between them, as in a
    measurement that repeats: what the first ones find in the buckets, the later ones do not.

    Returns:
        (ranks,) seconds, one for each worker and, in `ps`, first the server; the greatest is when
        all are done.

    Raises:
        ValueError: Unknown algorithm, no worker, or bytes that are not a multiple of 4.
    """
    if algorithm not in ALGORITHMS:
        raise ValueError(f"algorithm {algorithm!r}: one of {', '.join(ALGORITHMS)}")
    if workers < 1 or tensor_bytes < 0 or tensor_bytes % ITEM_BYTES:
        raise ValueError(f"{workers} workers, {tensor_bytes} bytes of {ITEM_BYTES}-byte values")
    if algorithm == "mpi":
        return _library_seconds(workers, tensor_bytes, costs)
    if algorithm in ("ps", "ps_worker"):
        return _central_seconds(workers, tensor_bytes, costs, algorithm == "ps")
    return _even_seconds(algorithm, workers, tensor_bytes, costs)


class _Clocks:
    """The clocks and ports of many ranks; all ranks exchange at the same time."""

    def __init__(self, ranks: int, costs: Costs, piece: int) -> None:
        self.now, self.start = np.zeros(ranks), 0.0
        self.outward, self.inward = Port(costs), Port(costs)
        self.costs, self.piece = costs, piece

    def repeats(self) -> Iterator[None]:
        """Yield for each all-reduce to run, all ranks starting at the same time."""
        for _ in range(SERIES if self.costs.burst * self.costs.beta else 1):
            self.start = float(self.now.max())
            self.now = np.full_like(self.now, self.start)
            yield

    def exchange(self, send: Float64, source: Any, receive: Float64, *, add: bool) -> None:
        """Do what `Transfer.exchange` does.

        All are (ranks,): the bytes that each rank sends and receives, and the rank that is the
        source of the latter.
        """
        pieces = int(-(-send.max() // self.piece))
        sent: list[Float64] = []
        received: list[tuple[Float64, Float64]] = []
        for number in range(pieces + IN_FLIGHT if pieces else 0):
            # complete the pieces that were started IN_FLIGHT turns ago
            if number >= IN_FLIGHT:
                complete, length = received[number - IN_FLIGHT]
                self.now = np.maximum(self.now, complete)
                if add:
                    self.now = self.now + self.costs.gamma * length
                self.now = np.maximum(self.now, sent[number - IN_FLIGHT])
            # start the next ones
            if number < pieces:
                outgoing = np.clip(send - number * self.piece, 0, self.piece)
                incoming = np.clip(receive - number * self.piece, 0, self.piece)
                first = np.maximum(self.now, self.outward.free)
                sent.append(self.outward.occupy(self.now, self.now, outgoing))
                comes = incoming > 0
                head, tail = (
                    np.where(comes, left[source] + self.costs.alpha, -np.inf)
                    for left in (first, sent[-1])
                )
                passed = self.inward.occupy(head, tail, incoming)
                received.append((np.where(comes, passed, -np.inf), incoming))


def _even_seconds(algorithm: str, workers: int, tensor_bytes: int, costs: Costs) -> Float64:
    """Return each rank's seconds in the ring or with sharded servers.

    Where a number divides both the values and the ranks, block sizes repeat that many times round
    the ring, and so does all that ranks do: one period represents all.
    """
    values = tensor_bytes // ITEM_BYTES
    period = workers // math.gcd(values, workers)
    bounds = block_bounds(values, workers)[: period + 1]
    blocks = np.diff(np.array(bounds, dtype=np.float64)) * ITEM_BYTES
    rank = np.arange(period)
    clocks = _Clocks(period, costs, PIECE_BYTES)

    def run(schedule: Iterator[Round], *, add: bool) -> None:
        for move in schedule:
            send, receive = (
                np.broadcast_to(blocks[number % period], period)
                for number in (move.send, move.receive)
            )
            clocks.exchange(send, move.source % period, receive, add=add)

    for _ in clocks.repeats():
        if algorithm == "ring":
            run(scatter_rounds(rank, workers), add=True)
            run(gather_rounds(rank, workers), add=False)
        else:
            run(push_rounds(rank, workers), add=False)
            clocks.now = clocks.now + (workers - 1) * blocks * costs.gamma
            run(pull_rounds(rank, workers), add=False)
    return np.tile(clocks.now - clocks.start, workers // period)


def _central_seconds(workers: int, tensor_bytes: int, costs: Costs, own_rank: bool) -> Float64:
    """Return the seconds of the server, then of each worker that is not the server.

    Workers send at once, and their tensors queue at the server's port, which takes them one after
    the other; the server adds each piece when it is there. Then the sum leaves through the same
    port, each piece to all workers.
    """
    alpha, beta, gamma, burst = costs
    clients = workers if own_rank else workers - 1
    if not clients or not tensor_bytes:
        return np.zeros(workers + own_rank)
    starts = np.arange(0, tensor_bytes, PIECE_BYTES)
    lengths = np.minimum(PIECE_BYTES, tensor_bytes - starts).astype(np.float64)  # (pieces,)

    # the server's messages, and what it still has to add from each on: it is done with a message
    # when the last one that kept it waiting, and all after it, are added
    arriving = np.tile(lengths, clients)
    leaving = np.repeat(lengths, clients)
    added = arriving * gamma
    if own_rank:
        added[: len(lengths)] = 0  # the first worker's tensor is only put in place
    still_to_add = np.cumsum(added[::-1])[::-1]
    shape = len(lengths), clients

    store = burst * beta
    client_out, server_in, server_out = (_Bucket(store) for _ in range(3))
    client_in = _Bucket(store, clients)
    end = np.zeros(1)
    for _ in range(SERIES if store else 1):
        start = float(end.max())
        first, last = (np.tile(at, clients) for at in client_out.send(start, lengths * beta))
        arrived = server_in.receive(first + alpha, last + alpha, arriving * beta)
        first, last = server_out.send(float((arrived + still_to_add).max()), leaving * beta)
        done = client_in.receive(
            first.reshape(shape) + alpha, last.reshape(shape) + alpha, leaving.reshape(shape) * beta
        )
        end = np.concatenate([last[-1:], done[-1]])
    return end - start


class _Bucket:
    """Token buckets of `ports`, in seconds, with empty queues: `Port` for all messages at once.

    Each holds at most, and at the start, `store`.
    """

    def __init__(self, store: float, ports: int = 1) -> None:
        self.store, self.owed = store, np.full(ports, -store)

    def send(self, now: float, lengths: Float64) -> tuple[Float64, Float64]:
        """Return when the first and last bytes of messages leave the one port.

        All are given to it at `now`; they occupy it for `lengths`, (messages,) seconds.
        """
        given = np.full_like(lengths, now)
        last = self.receive(given, given, lengths)
        return np.concatenate([[now], last[:-1]]), last

    def receive(self, first: Float64, last: Float64, lengths: Float64) -> Float64:
        """Return when messages have passed, in order of receiving.

        All are (messages, …): when the first and last byte of each is there, and the seconds that
        it occupies its port.
        """
        total = np.cumsum(lengths, axis=0)
        start = np.maximum.accumulate(first - self.store - (total - lengths), axis=0)
        owed = total + np.maximum(start, self.owed)
        self.owed = owed[-1:].reshape(self.owed.shape)
        return np.maximum.accumulate(np.maximum(last, owed), axis=0)


def _library_seconds(workers: int, tensor_bytes: int, costs: Costs) -> Float64:
    """Return each rank's seconds in MPI_Allreduce by its published algorithms.

    Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH"
    (2005), as MPICH applies it: recursive doubling for short messages, reduce-scatter by halving
    with allgather by doubling for long ones. Where the number of ranks is not a power of two, those
    beyond it give their tensors to a neighbour first, and get the sum afterwards.
    """
    clocks = _Clocks(workers, costs, piece=tensor_bytes)
    if workers == 1 or not tensor_bytes:
        return clocks.now
    # which ranks give a tensor away, which take one, and the numbers of those that go on
    rank = np.arange(workers)
    steps = workers.bit_length() - 1
    beyond = workers - (1 << steps)
    gives = (rank < 2 * beyond) & (rank % 2 == 0)
    takes = (rank < 2 * beyond) & (rank % 2 == 1)
    number = np.where(rank < 2 * beyond, rank // 2, rank - beyond)

    def exchange(length: float, step: int, *, add: bool) -> None:
        partner = number ^ (1 << step)
        source = np.where(partner < beyond, 2 * partner + 1, partner + beyond)
        moved = np.where(gives, 0.0, length)
        clocks.exchange(moved, np.where(gives, 0, source), moved, add=add)

    short = tensor_bytes <= SHORT_BYTES or tensor_bytes // ITEM_BYTES < 1 << steps
    send, receive = gives * float(tensor_bytes), takes * float(tensor_bytes)
    for _ in clocks.repeats():
        clocks.exchange(send, rank - 1, receive, add=True)
        for step in range(steps):
            exchange(tensor_bytes if short else tensor_bytes / 2 ** (step + 1), step, add=True)
        for step in reversed(range(0 if short else steps)):
            exchange(tensor_bytes / 2 ** (step + 1), step, add=False)
        clocks.exchange(receive, (rank + 1) % workers, send, add=False)
    return clocks.now - clocks.start
